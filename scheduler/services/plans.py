"""Commits what a cycle decided: holds, states and intents.

Starts are written many at a time. Where PostgreSQL refuses a batch (a device is taken), its starts
are tried one by one: a clash costs that job its turn and nobody else's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, models, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F, Func, Max
from django.utils.dateparse import parse_datetime

from scheduler.choices import JobState, Verb
from scheduler.core.plan import Plan, Start
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.reasons import Pending
from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import Fleet
from scheduler.models import Cycle, Decision, DeviceHold, Intent, Job, Placement, ReplicaHold
from scheduler.services.batches import batched
from scheduler.services.evictions import evictions_commit, promises_end
from scheduler.services.expected import expected_note
from scheduler.services.keys import FleetKeys
from scheduler.services.stored import stored_float, stored_json, stored_text, stored_time
from scheduler.services.transitions import jobs_move
from telemetry.models import Cluster
from tenants.errors import ConflictError

ACTOR = "scheduler"
START_BATCH = 100
ROW_BATCH = 5000
PENDING_BATCH = 1000
ETA_STEP_S = 10.0
ETA_STEP_FRAC = 0.05
"""A planned start that moves by less, in seconds or of the wait, is not written again."""
PRIORITY_STEP = 5.0
"""A part of the priority that moves by less is not written again; the steps of age are finer."""

_WRITE_PENDING = """
UPDATE scheduler_job job SET pending = news.pending::jsonb
FROM unnest(%s::uuid[], %s::text[]) AS news(uid, pending)
WHERE job.uid = news.uid AND job.state = %s
"""


class Upper(Func):
    """The end of a range."""

    function = "upper"
    output_field = models.DateTimeField()


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a plan.

    Attributes:
        cycle: as it was written.
        started: jobs that start.
        lost: jobs that do not start, or are not evicted, after all -> why.
    """

    cycle: Cycle
    started: tuple[str, ...]
    lost: Mapping[str, str]


def plan_commit(
    *,
    cluster: Cluster,
    plan: Plan,
    fleet: Fleet,
    keys: FleetKeys,
    preemption: PreemptionPolicy,
    now: datetime,
) -> Committed:
    """Write a cycle, its starts and evictions with their intents, and why the others wait."""
    cycle = _cycle_create(cluster, plan, now)
    writer = StartWriter(cycle=cycle, fleet=fleet, keys=keys, now=now)
    started: list[str] = []
    lost: dict[str, str] = {}
    for batch in batched(plan.starts, START_BATCH):
        try:
            done = writer.write(batch)
        except (IntegrityError, ConflictError):
            done = _one_by_one(writer, batch, lost)
        started += done
        lost |= {s.uid: "no longer queued" for s in batch if s.uid not in {*done, *lost}}
    if lost:
        Cycle.objects.filter(pk=cycle.pk).update(start_count=len(started))
    lost |= evictions_commit(cycle=cycle, plan=plan, keys=keys, preemption=preemption, now=now)
    promises_end(cluster=cluster, now=now)
    _pending_write(plan.pending, cycle, now)
    expected_note(cluster=cluster, pending=plan.pending, now=now)
    return Committed(cycle=cycle, started=tuple(started), lost=lost)


def cycle_timed(*, cycle: Cycle, timings: Mapping[str, float]) -> None:
    """Note how long each step of a cycle took, in milliseconds."""
    Cycle.objects.filter(pk=cycle.pk).update(
        timings=dict(timings), wall_ms=round(sum(timings.values()))
    )


def _one_by_one(writer: "StartWriter", batch: list[Start], lost: dict[str, str]) -> list[str]:
    done: list[str] = []
    for start in batch:
        try:
            done += writer.write([start])
        except (IntegrityError, ConflictError) as clash:
            lost[start.uid] = str(clash).splitlines()[0]
    return done


def _cycle_create(cluster: Cluster, plan: Plan, now: datetime) -> Cycle:
    solver = plan.solver
    return Cycle.objects.create(
        cluster=cluster,
        at=now,
        strategy=solver.strategy,
        asked=solver.asked,
        status=solver.status,
        note=stored_text(solver.note),
        objective=stored_float(solver.objective),
        objective_rules=stored_float(solver.objective_rules),
        gap_frac=stored_float(solver.gap_frac),
        pending_count=len(plan.pending),
        start_count=len(plan.starts),
        wall_ms=0,
        fair_shares=[stored_json(asdict(row)) for row in plan.fair_shares],
        clashes=[stored_json(asdict(clash)) for clash in plan.clashes],
    )


@dataclass(frozen=True, slots=True)
class StartWriter:
    """Writes the starts of one cycle.

    Attributes:
        cycle: that decided them.
        fleet, keys: of the snapshot that they were decided on.
        now: time of the cycle.
    """

    cycle: Cycle
    fleet: Fleet
    keys: FleetKeys
    now: datetime

    def write(self, starts: Sequence[Start]) -> list[str]:
        """Write starts with holds, states and intents in one transaction: all, or none.

        Returns:
            The jobs that start; the others are no longer queued.

        Raises:
            IntegrityError: PostgreSQL finds a node or a device taken.
        """
        with transaction.atomic():
            rows = Job.objects.select_for_update(of=("self",)).select_related("cluster")
            rows = rows.filter(pk__in=[s.uid for s in starts], state=JobState.QUEUED)
            jobs = {str(job.pk): job for job in rows.defer("command", "env").order_by("pk")}
            todo = [start for start in starts if start.uid in jobs]
            if todo:
                self._move(todo, jobs)
                placements = self._placements(todo, jobs)
                self._holds(todo, placements)
                Intent.objects.bulk_create(
                    Intent(placement=placement, verb=Verb.BIND, created_at=self.now)
                    for placement in placements
                )
                self._decisions(todo)
        return [start.uid for start in todo]

    def _move(self, starts: Sequence[Start], jobs: Mapping[str, Job]) -> None:
        nodes = {start.uid: sorted(set(self._nodes(start))) for start in starts}
        jobs_move(
            jobs=list(jobs.values()),
            to=JobState.STARTING,
            actor=ACTOR,
            now=self.now,
            reason="placed",
            data={
                job.pk: {"attempt": job.attempt + 1, "nodes": nodes[uid]}
                for uid, job in jobs.items()
            },
            attempt=F("attempt") + 1,
            promised_at=None,
            pending={},
        )

    def _placements(self, starts: Sequence[Start], jobs: Mapping[str, Job]) -> list[Placement]:
        return Placement.objects.bulk_create(
            Placement(
                job=jobs[start.uid],
                attempt=jobs[start.uid].attempt + 1,
                cluster=self.cycle.cluster,
                flavor=start.flavor,
                score=stored_float(start.score) or 0.0,
                priority_parts=stored_json(start.priority_parts),
                created_at=self.now,
            )
            for start in starts
        )

    def _holds(self, starts: Sequence[Start], placements: Sequence[Placement]) -> None:
        pairs = [
            (replica, row)
            for start, placement in zip(starts, placements, strict=True)
            for replica, row in zip(start.replicas, self._replicas(start, placement), strict=True)
        ]
        ReplicaHold.objects.bulk_create((row for _, row in pairs), batch_size=ROW_BATCH)
        devices = {device for replica, _ in pairs for device in replica.devices}
        free_since = _free_since([self.keys.devices[device] for device in devices], self.now)
        holds = [
            DeviceHold(
                replica=row,
                device_id=key,
                gpu_milli=replica.gpu_milli,
                memory_mib=replica.gpu_memory_mib,
                exclusive=replica.gpu_milli == WHOLE_MILLI,
                period=DateTimeTZRange(free_since.get(key, self.now), None),
            )
            for replica, row in pairs
            for key in [self.keys.devices[device] for device in replica.devices]
        ]
        holds.sort(key=lambda hold: hold.device_id)
        DeviceHold.objects.bulk_create(holds, batch_size=ROW_BATCH)

    def _replicas(self, start: Start, placement: Placement) -> list[ReplicaHold]:
        return [
            ReplicaHold(
                placement=placement,
                index=index,
                node_id=self.keys.nodes[replica.node],
                cpu_milli=placement.job.cpu_milli,
                memory_mib=placement.job.memory_mib,
            )
            for index, replica in enumerate(start.replicas)
        ]

    def _decisions(self, starts: Sequence[Start]) -> None:
        Decision.objects.bulk_create(
            Decision(
                cycle=self.cycle,
                job_id=UUID(start.uid),
                verb="start",
                score=stored_float(start.score),
                priority_parts=stored_json(start.priority_parts),
                evidence={"flavor": start.flavor, "nodes": self._nodes(start)},
            )
            for start in starts
        )

    def _nodes(self, start: Start) -> list[str]:
        return [self.fleet.node_names[replica.node] for replica in start.replicas]


def _free_since(device_keys: Sequence[int], now: datetime) -> dict[int, datetime]:
    """Return the end of the latest hold of devices where the clock has stepped back behind it."""
    late = DeviceHold.objects.filter(
        device_id__in=device_keys, exclusive=True, period__overlap=DateTimeTZRange(now, None)
    )
    ends = late.order_by().values_list("device_id").annotate(end=Max(Upper("period")))
    return {device: end for device, end in ends if end is not None}


def _pending_write(pending: Sequence[Pending], cycle: Cycle, now: datetime) -> None:
    """Write why jobs wait, where it differs from what was said before."""
    for batch in batched(pending, PENDING_BATCH):
        waiting = Job.objects.filter(pk__in=[held.uid for held in batch], state=JobState.QUEUED)
        said = {str(uid): before for uid, before in waiting.values_list("pk", "pending")}
        news = [(held, pending_json(held)) for held in batch if held.uid in said]
        news = [(h, answer) for h, answer in news if is_news(said[h.uid], answer, now)]
        if not news:
            continue
        with transaction.atomic(), connection.cursor() as cursor:
            Decision.objects.bulk_create(
                _hold_decision(held, cycle)
                for held, answer in news
                if said[held.uid].get("code") != answer["code"]
            )
            uids, texts = [h.uid for h, _ in news], [json.dumps(answer) for _, answer in news]
            cursor.execute(_WRITE_PENDING, [uids, texts, JobState.QUEUED])


def is_news(before: Mapping[str, Any], after: Mapping[str, Any], now: datetime) -> bool:
    """Return whether an answer differs from the last one by more than the passing of time."""
    moving = ("expected_start_p50", "expected_start_p90", "priority_parts")
    if {k: v for k, v in before.items() if k not in moving} != {
        k: v for k, v in after.items() if k not in moving
    }:
        return True
    if any(_eta_moved(before.get(name), after.get(name), now) for name in moving[:2]):
        return True
    old, new = before.get("priority_parts") or {}, after.get("priority_parts") or {}
    return old.keys() != new.keys() or any(
        abs(new[name] - old[name]) >= PRIORITY_STEP for name in new
    )


def _eta_moved(before: str | None, after: str | None, now: datetime) -> bool:
    old, new = (parse_datetime(text) if text else None for text in (before, after))
    if old is None or new is None:
        return old is not new
    wait_s = max(0.0, (new - now).total_seconds())
    return abs((new - old).total_seconds()) >= max(ETA_STEP_S, ETA_STEP_FRAC * wait_s)


def _hold_decision(held: Pending, cycle: Cycle) -> Decision:
    return Decision(
        cycle=cycle,
        job_id=UUID(held.uid),
        verb="hold",
        code=held.code,
        evidence=stored_json(held.evidence),
        expected_start_p50=_whole_second(held.expected_start_p50_s),
        expected_start_p90=_whole_second(held.expected_start_p90_s),
    )


def pending_json(held: Pending) -> dict[str, Any]:
    """Return a waiting reason as it is stored with the job."""
    p50 = _whole_second(held.expected_start_p50_s)
    p90 = _whole_second(held.expected_start_p90_s)
    return {
        "code": str(held.code),
        "evidence": stored_json(held.evidence),
        "remedies": [{"code": r.code, "params": stored_json(r.params)} for r in held.remedies],
        "expected_start_p50": p50.isoformat() if p50 else None,
        "expected_start_p90": p90.isoformat() if p90 else None,
        "position": held.position,
        "priority_parts": stored_json(held.priority_parts),
    }


def _whole_second(epoch_s: float | None) -> datetime | None:
    known = stored_float(epoch_s)
    return None if known is None else stored_time(float(round(known)))
