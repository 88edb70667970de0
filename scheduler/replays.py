"""Database -> Trace: what a cluster's jobs asked for and how long they really ran, to play again.

Only jobs that ran are there: how long another would have run is not known. What came after the end
of the window is not known either, however long ago it was. On a flavor other than
the one that it had, a job is taken to be faster or slower as the throughputs of its class say, or
else the flavors' CU, where both are known. Jobs that were running when the window begins run on for
what was left of them. What the site remembers is that of the begin: past use, how long jobs really
ran, and what had arrived; what it knows of speeds is that of today.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet, Sum

from scheduler import snapshots
from scheduler.choices import FINAL_STATES, JobState
from scheduler.core.plan import EvictionCause
from scheduler.core.snapshot import DemandKind, JobSpec, Snapshot
from scheduler.models import HEAVY, DeviceHold, Job, JobEvent, Placement, ReplicaHold
from scheduler.services.attempts import RESIZED
from scheduler.services.checkpoints import safe_until
from scheduler.simulate.holdings import Holdings
from scheduler.simulate.jobs import LEAST_CHECKPOINT_S, SimJob
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
        recorded: what really became of them; of evicted attempts what was safe counts as kept.
        begun: uids of jobs that ran already at the begin.
        never_ran: how many jobs were submitted in it that never started.
        still_run: how many had not ended, whether they ran or waited for another turn; they are
            taken to run until their time limit.
    """

    trace: Trace
    recorded: Result
    begun: frozenset[str]
    never_ran: int
    still_run: int


@dataclass(frozen=True, slots=True)
class _Held:
    """One attempt: what it held in the window, and when, in epoch seconds.

    `safe_s` is up to when its work was saved, `started_s` where none was.
    """

    flavor: str
    created_s: float
    started_s: float
    released_s: float
    safe_s: float
    holds: bool
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
        held = _held(cluster, jobs, since, now, checkpoint_every_s)
        events = _events(jobs, since, now)
    world = _begin(taken.snapshot, arrived)
    ran = [job for job in jobs if held.get(job.pk)]
    made = [_sim_job(job, held[job.pk], world, now=now, every_s=checkpoint_every_s) for job in ran]
    return Recording(
        trace=Trace(world, tuple(made), taken.policy, taken.past_use),
        recorded=_recorded(zip(ran, made, strict=True), held, events, world, now),
        begun=frozenset(str(job.pk) for job in ran if held[job.pk][0].created_s < world.now_s),
        never_ran=len(jobs) - len(ran),
        still_run=sum(not _ended_by(job, now) for job in ran),
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


def _ended_by(job: Job, moment: datetime) -> bool:
    return job.state in FINAL_STATES and job.finished_at is not None and job.finished_at <= moment


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


def _held(
    cluster: Cluster, jobs: Sequence[Job], since: datetime, now: datetime, every_s: float
) -> Mapping[object, list[_Held]]:
    """Return job -> its attempts that held something in the window, in order, cut at its end."""
    known = {job.pk: job for job in jobs}
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
        if row.job_id not in known:  # it had ended before, and was only still to be released
            continue
        count, cpu = replicas.get(row.pk, (1, 0))
        begun = min(row.started_at or row.created_at, now)
        ended = min(max(row.released_at or now, begun), now)
        one = _Held(
            flavor=row.flavor,
            created_s=row.created_at.timestamp(),
            started_s=begun.timestamp(),
            released_s=ended.timestamp(),
            safe_s=_safe_s(known[row.job_id], row, begun, ended, every_s),
            holds=row.released_at is None or row.released_at > now,
            replicas=count,
            cpu_milli=cpu or 0,
            device_milli=milli.get(row.pk) or 0,
        )
        held.setdefault(row.job_id, []).append(one)
    return held


def _safe_s(
    job: Job, placement: Placement, begun: datetime, ended: datetime, every_s: float
) -> float:
    """Return up to when an attempt had saved its work at its end: as seen, or as it is taken to."""
    safe = safe_until(job=job, placement=placement, now=ended)
    if safe is not None:
        return max(safe, begun).timestamp()
    saves_s = every_s if job.devices else 0.0
    ran_s = (ended - begun).total_seconds()
    return begun.timestamp() + (ran_s // saves_s * saves_s if saves_s else 0.0)


def _events(jobs: Sequence[Job], since: datetime, now: datetime) -> Mapping[object, list[str]]:
    """Return job -> why it went back to the queue, each time; who is resized does for a moment."""
    found: dict[object, list[str]] = {}
    rows = JobEvent.objects.filter(
        job__in=[job.pk for job in jobs],
        kind="state",
        to_state=JobState.QUEUED,
        reason__in=EVICTED | LOST | {RESIZED},
        at__gte=since,
        at__lt=now,
    )
    for job, reason in rows.order_by("at", "pk").values_list("job_id", "reason"):
        found.setdefault(job, []).append(reason)
    return found


def _sim_job(
    job: Job, attempts: Sequence[_Held], world: Snapshot, *, now: datetime, every_s: float
) -> SimJob:
    """Return a job as it is played; of an attempt that ran already what was left."""
    asked = snapshots.job_spec(job, now)
    (spec,), last = snapshots.classed([asked], world.throughputs), attempts[-1]
    limit_s, begin_s = spec.time_limit_s, world.now_s
    throughput = _throughput(spec, last.flavor, world)
    passed_s = max(0.0, begin_s - attempts[0].started_s)
    speeds = [_speed(one, spec, throughput) for one in attempts]
    work = sum(math.prod(pair) for pair in zip(speeds, _worked_s(attempts), strict=True))
    if not _ended_by(job, now):
        work = speeds[-1] * limit_s
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
        work=max(speeds[-1] * LEAST_S, work - speeds[0] * passed_s),
        throughput=throughput,
        checkpoint_every_s=max(saves_s, LEAST_CHECKPOINT_S)  # a fast clock makes it shorter
        if saves_s
        else (every_s if spec.shape.devices else 0.0),
    )


def _worked_s(attempts: Sequence[_Held]) -> list[float]:
    """Return the seconds that each attempt brought its job on: what was saved, the last one all."""
    saved_s = [one.safe_s - one.started_s for one in attempts[:-1]]
    return [*saved_s, attempts[-1].released_s - attempts[-1].started_s]


def _speed(one: _Held, spec: JobSpec, throughput: Mapping[str, float]) -> float:
    """Return the units of work a second of an attempt: 1 with the least replicas, where last."""
    return throughput.get(one.flavor, 1.0) * one.replicas / spec.replicas_min


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
    jobs: Iterable[tuple[Job, SimJob]],
    held: Mapping[object, list[_Held]],
    events: Mapping[object, list[str]],
    world: Snapshot,
    now: datetime,
) -> Result:
    """Return what really became of jobs, in the simulator's terms."""
    histories, spans = [], list[Span]()
    for job, made in jobs:
        attempts, ended = held[job.pk], _ended_by(job, now)
        mine = [
            _span(job, one, world.now_s, final=ended and one is attempts[-1]) for one in attempts
        ]
        spans += mine
        state = ENDS[JobState(job.state)] if ended else _unended(attempts[-1])
        history = _history(job, state, mine, events.get(job.pk, ()), world.now_s)
        asked_milli = made.spec.shape.device_milli * made.spec.replicas_min
        histories.append(replace(history, device_milli=asked_milli))
    return Result(
        begin_s=world.now_s,
        end_s=now.timestamp(),
        jobs=tuple(sorted(histories, key=lambda history: history.uid)),
        spans=tuple(sorted(spans, key=lambda span: (span.end_s, span.uid))),
        capacity=(Capacity(world.now_s, Holdings(world.fleet).capacity()),),
        events=len(spans),
        cycles=0,
    )


def _span(job: Job, one: _Held, begin_s: float, *, final: bool) -> Span:
    start_s = max(one.created_s, begin_s)
    worked_s = max(one.started_s, begin_s)
    kept_until_s = one.released_s if final or one.holds else one.safe_s
    return Span(
        str(job.pk),
        job.tenant.slug,
        one.flavor,
        one.replicas,
        one.cpu_milli,
        one.device_milli,
        start_s,
        one.released_s,
        max(0.0, kept_until_s - worked_s),
        final,
        min(worked_s, one.released_s) - start_s,
    )


def _unended(last: _Held) -> End:
    return End.RUNNING if last.holds else End.WAITING


def _history(
    job: Job, state: End, spans: Sequence[Span], reasons: Sequence[str], begin_s: float
) -> History:
    lost_s = [span.end_s - span.start_s - span.startup_s - span.kept_s for span in spans]
    devices = [span.device_milli / 1000 for span in spans]
    return History(
        uid=str(job.pk),
        tenant=job.tenant.slug,
        submitted_s=max(job.submitted_at.timestamp(), begin_s),
        state=state,
        starts=tuple(span.start_s for span in spans),
        end_s=spans[-1].end_s if spans[-1].final else None,
        evictions=sum(reason in EVICTED for reason in reasons),
        losses=sum(reason in LOST for reason in reasons),
        resizes=sum(reason == RESIZED for reason in reasons),
        lost_s=math.fsum(lost_s),
        lost_device_s=math.fsum(map(math.prod, zip(lost_s, devices, strict=True))),
    )


def window(*, days: float, now: datetime) -> datetime:
    """Return the begin of a window of so many days until now."""
    return now - timedelta(days=days)
