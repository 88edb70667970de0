"""Database -> Trace: what a cluster's jobs asked for and how long they really ran, to play again.

Only jobs that ran are there: how long another would have run is not known. On a flavor other than
the one that it had, a job is taken to be faster or slower as the throughputs of its class say, or
else the flavors' CU, where both are known. Jobs that were running when the window begins run on for
what was left of them. What the site remembers is that of the begin: past use, how long jobs really
ran, and what had arrived; what it knows of speeds is that of today.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Q, QuerySet, Sum

from scheduler import snapshots
from scheduler.choices import FINAL_STATES, JobState
from scheduler.core.plan import EvictionCause
from scheduler.core.snapshot import DemandKind, JobSpec, Snapshot
from scheduler.models import HEAVY, DeviceHold, Job, JobEvent, Placement, ReplicaHold
from scheduler.simulate.holdings import Holdings
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.result import Capacity, End, History, Result, Span
from scheduler.simulate.traces.exported import Trace
from scheduler.simulate.traces.fleet import all_free
from telemetry.models import Cluster

LEAST_S = 1.0
"""A job that ended within the same second ran for so long."""

ENDS = {
    JobState.SUCCEEDED: End.COMPLETED,
    JobState.FAILED: End.FAILED,
    JobState.CANCELLED: End.COMPLETED,
    JobState.TIMED_OUT: End.TIMED_OUT,
}
EVICTED = frozenset(EvictionCause)
LOST = frozenset({"node_lost", "drain"})


@dataclass(frozen=True, slots=True)
class Recording:
    """What a window of a cluster's past holds.

    Attributes:
        trace: the world at its begin, and the jobs that ran in it.
        recorded: what really became of them; of evicted attempts all time counts as kept.
        begun: uids of jobs that ran already at the begin.
        never_ran: how many jobs were submitted in it that never started.
        still_run: how many had not ended; they are taken to run until their time limit.
    """

    trace: Trace
    recorded: Result
    begun: frozenset[str]
    never_ran: int
    still_run: int


@dataclass(frozen=True, slots=True)
class _Held:
    """One attempt: what it held, and when, in epoch seconds."""

    flavor: str
    created_s: float
    started_s: float
    released_s: float
    open: bool
    replicas: int
    cpu_milli: int
    device_milli: int


def recording(
    *, cluster: Cluster, since: datetime, now: datetime, checkpoint_every_s: float = 0.0
) -> Recording:
    """Return a cluster's window from `since` until `now`; nothing is written.

    Args:
        cluster: whose.
        since: begin of the window.
        now: its end.
        checkpoint_every_s: what jobs with devices that do not say how often they save their work
            are taken to save it at; 0 = never.
    """
    with snapshots.one_instant():
        taken = snapshots.take(cluster=cluster, now=since)
        arrived = snapshots.arrived(_ended(cluster, since))
        jobs = _jobs(cluster, since, now)
        held = _held(cluster, since, now)
        events = _events(jobs, since, now)
    world = _begin(taken.snapshot, arrived)
    ran = [job for job in jobs if held.get(job.pk)]
    made = [
        _sim_job(job, held[job.pk], world, now_s=now.timestamp(), every_s=checkpoint_every_s)
        for job in ran
    ]
    return Recording(
        trace=Trace(world, tuple(made), taken.policy),
        recorded=_recorded(ran, held, events, world, now.timestamp()),
        begun=frozenset(str(job.pk) for job in ran if held[job.pk][0].created_s < world.now_s),
        never_ran=len(jobs) - len(ran),
        still_run=sum(held[job.pk][-1].open for job in ran),
    )


def _begin(frozen: Snapshot, arrived: tuple[DemandKind, ...]) -> Snapshot:
    """Return the world before anything arrives: today's fleet, all of it free.

    What was said of expected starts is of other jobs, and changes no start.
    """
    return replace(
        frozen,
        fleet=all_free(frozen.fleet),
        pending=(),
        running=(),
        expectations=(),
        demand_mix=arrived,
    )


def _ended(cluster: Cluster, since: datetime) -> QuerySet[Job]:
    """Return the jobs that had ended when the window begins; all others arrive in it."""
    return Job.objects.filter(cluster=cluster, state__in=FINAL_STATES, finished_at__lte=since)


def _jobs(cluster: Cluster, since: datetime, now: datetime) -> Sequence[Job]:
    """Return the jobs that waited or ran in the window."""
    rows = (
        Job.objects.filter(cluster=cluster, submitted_at__lt=now)
        .exclude(state__in=FINAL_STATES, finished_at__lte=since)
        .select_related("tenant", "priority_class", "cluster")
        .defer(*HEAVY)
        .order_by("submitted_at", "uid")
    )
    return list(rows)


def _held(cluster: Cluster, since: datetime, now: datetime) -> Mapping[object, list[_Held]]:
    """Return job -> its attempts that held something in the window, in order."""
    placements = Placement.objects.filter(
        Q(released_at__isnull=True) | Q(released_at__gt=since), cluster=cluster, created_at__lt=now
    )
    counted = (
        ReplicaHold.objects.filter(placement__in=placements)
        .values("placement_id")
        .annotate(count=Count("pk"), cpu=Sum("cpu_milli"))
        .values_list("placement_id", "count", "cpu")
    )
    replicas = {key: (count, cpu) for key, count, cpu in counted.order_by("placement_id")}
    milli = dict(
        DeviceHold.objects.filter(replica__placement__in=placements)
        .values("replica__placement_id")
        .annotate(milli=Sum("gpu_milli"))
        .values_list("replica__placement_id", "milli")
        .order_by("replica__placement_id")
    )
    held: dict[object, list[_Held]] = {}
    for row in placements.order_by("created_at", "pk"):
        count, cpu = replicas.get(row.pk, (1, 0))
        begun, ended = row.started_at or row.created_at, row.released_at or now
        one = _Held(
            flavor=row.flavor,
            created_s=row.created_at.timestamp(),
            started_s=begun.timestamp(),
            released_s=max(ended, row.created_at).timestamp(),
            open=row.released_at is None,
            replicas=count,
            cpu_milli=cpu or 0,
            device_milli=milli.get(row.pk) or 0,
        )
        held.setdefault(row.job_id, []).append(one)
    return held


def _events(jobs: Sequence[Job], since: datetime, now: datetime) -> Mapping[object, list[str]]:
    """Return job -> why it went back to the queue, each time."""
    found: dict[object, list[str]] = {}
    rows = JobEvent.objects.filter(
        job__in=[job.pk for job in jobs],
        kind="state",
        to_state=JobState.QUEUED,
        reason__in=EVICTED | LOST,
        at__gte=since,
        at__lt=now,
    )
    for job, reason in rows.order_by("at", "pk").values_list("job_id", "reason"):
        found.setdefault(job, []).append(reason)
    return found


def _sim_job(
    job: Job, attempts: Sequence[_Held], world: Snapshot, *, now_s: float, every_s: float
) -> SimJob:
    """Return a job as it is played: its last attempt's time is its work."""
    asked = snapshots.job_spec(job, datetime.fromtimestamp(now_s, tz=UTC))
    (spec,), last = snapshots.classed([asked], world.throughputs), attempts[-1]
    limit_s, begin_s = spec.time_limit_s, world.now_s
    passed_s = max(0.0, begin_s - last.started_s)  # of an attempt that ran already
    ran_s = limit_s if last.open else last.released_s - last.started_s
    left_s = max(LEAST_S, min(ran_s, now_s - last.started_s + limit_s) - passed_s)
    saves_s = job.checkpoint_interval_s / job.cluster.clock_scale
    again = replace(
        spec,
        replicas_max=job.replicas_max,  # whatever it was last resized to
        submitted_s=max(spec.submitted_s, begin_s),
        time_limit_s=max(LEAST_S, limit_s - passed_s),
        not_before_s=0.0,
        promised_s=0.0,
        preempted_count=0,
    )
    return SimJob(
        again,
        work=left_s * last.replicas / spec.replicas_min,
        throughput=_throughput(spec, last.flavor, world),
        checkpoint_every_s=saves_s or (every_s if spec.shape.devices else 0.0),
    )


def _throughput(spec: JobSpec, flavor: str, world: Snapshot) -> Mapping[str, float]:
    """Return flavor -> speed against the one that it had; equal where one of both is unknown.

    As measured of its class; where one of both was not, by CU.
    """
    if not spec.shape.devices:
        return {}
    job_class, names = spec.job_class or spec.kind, [one.name for one in world.fleet.flavors]
    measured = {name: world.throughputs.get((job_class, name)) for name in names}
    units = {one.name: one.compute_units for one in world.fleet.flavors}
    return {
        name: _ratio(measured, name, flavor) or _ratio(units, name, flavor) or 1.0 for name in names
    }


def _ratio(speeds: Mapping[str, float | None], flavor: str, had: str) -> float | None:
    """Return how much faster a flavor is than another; None where one of both is unknown."""
    speed, other = speeds.get(flavor), speeds.get(had)
    return speed / other if speed and other else None


def _recorded(
    jobs: Iterable[Job],
    held: Mapping[object, list[_Held]],
    events: Mapping[object, list[str]],
    world: Snapshot,
    now_s: float,
) -> Result:
    """Return what really became of jobs, in the simulator's terms."""
    histories, spans = [], list[Span]()
    for job in jobs:
        mine = [
            _span(job, one, world.now_s, final=one is held[job.pk][-1] and not one.open)
            for one in held[job.pk]
        ]
        spans += mine
        histories.append(_history(job, mine, events.get(job.pk, ()), world.now_s))
    return Result(
        begin_s=world.now_s,
        end_s=now_s,
        jobs=tuple(sorted(histories, key=lambda history: history.uid)),
        spans=tuple(sorted(spans, key=lambda span: (span.end_s, span.uid))),
        capacity=(Capacity(world.now_s, Holdings(world.fleet).capacity()),),
        events=len(spans),
        cycles=0,
    )


def _span(job: Job, one: _Held, begin_s: float, *, final: bool) -> Span:
    start_s = max(one.created_s, begin_s)
    return Span(
        str(job.pk),
        job.tenant.slug,
        one.flavor,
        one.replicas,
        one.cpu_milli,
        one.device_milli,
        start_s,
        one.released_s,
        one.released_s - start_s,
        final,
    )


def _history(job: Job, spans: Sequence[Span], reasons: Sequence[str], begin_s: float) -> History:
    ended = job.state in FINAL_STATES
    return History(
        uid=str(job.pk),
        tenant=job.tenant.slug,
        submitted_s=max(job.submitted_at.timestamp(), begin_s),
        state=ENDS[JobState(job.state)] if ended else End.RUNNING,
        starts=tuple(span.start_s for span in spans),
        end_s=spans[-1].end_s if ended else None,
        evictions=sum(reason in EVICTED for reason in reasons),
        losses=sum(reason in LOST for reason in reasons),
    )


def window(*, days: float, now: datetime) -> datetime:
    """Return the begin of a window of so many days until now."""
    return now - timedelta(days=days)
