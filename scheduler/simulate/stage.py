"""The world while time passes: what waits, what runs, what is free, and every move of a job."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from heapq import heappush
from typing import Any, TypeAlias

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import Plan, Start
from scheduler.core.requeue import back_off_s
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.decide.holdings import without
from scheduler.simulate.attempt import Attempt
from scheduler.simulate.holdings import Holdings
from scheduler.simulate.jobs import NodeChange, SimJob
from scheduler.simulate.pace import Pace
from scheduler.simulate.records import Record
from scheduler.simulate.result import Capacity, End, Result, Span
from scheduler.simulate.usage import Arrivals, DecayedUsage, RuntimeRatios
from scheduler.simulate.waiting import Waiting

END, LEAVE, REGAIN, NODE = range(4)
"""Kinds of events, in the order in which they happen at one instant."""

Event: TypeAlias = tuple[float, int, str, int]
"""(when, kind, job or node, token of the attempt or index of the change); a REGAIN is of a job."""


class Stage:
    """What there is, and what can be done to it.

    Attributes:
        heap: events to come; those of an attempt that is over are void.
        waiting: the jobs that wait.
        records: uid -> what was seen of a job so far.
        elastic: how many running jobs could have other sizes.
        events: how many moves there were.
    """

    def __init__(
        self, world: Snapshot, pace: Pace, past_use: Mapping[tuple[str, str], float]
    ) -> None:
        self._world, self._pace = world, pace
        self._still: dict[str, Any] = {f.name: getattr(world, f.name) for f in fields(Snapshot)}
        self._holdings = Holdings(world.fleet)
        self._usage = DecayedUsage(
            world.fleet, world.usage_decayed, now_s=world.now_s, past_use=past_use
        )
        self._ratios = RuntimeRatios(world.runtime_ratios)
        self._arrivals = Arrivals(world.demand_mix)
        self._running: dict[str, Attempt] = {}
        self._shown: dict[str, RunningJob] = {}  # of each attempt, what decisions see
        self._frozen: tuple[RunningJob, ...] | None = ()
        self._saving: dict[str, None] = {}  # which of them save their work now and then, in order
        self._leaving = Counter[str]()  # beneficiary -> how many hold still what it is to get
        self._spans: list[Span] = []
        self._capacity = [Capacity(world.now_s, self._holdings.capacity())]
        self._tokens = 0
        self.heap: list[Event] = []
        self.waiting = Waiting()
        self.records: dict[str, Record] = {}
        self.elastic = self.events = 0

    def freeze(self, now_s: float, *, with_mix: bool) -> Snapshot:
        """Return what a decision may look at; what has arrived lately where it does."""
        for uid in self._saving:
            if (attempt := self._running[uid]).save_due(now_s):
                self._show(attempt)
        if self._frozen is None:
            self._frozen = tuple(self._shown.values())
        moving = {
            "now_s": now_s,
            "fleet": self._holdings.freeze(),
            "pending": self.waiting.freeze(),
            "running": self._frozen,
            "usage_decayed": self._usage.now(now_s),
            "runtime_ratios": self._ratios.now(),
            "demand_mix": self._arrivals.now() if with_mix else (),
        }
        # Every cycle makes one, and replace() takes twice as long.
        return Snapshot(**self._still | moving)

    def attempt(self, uid: str, token: int) -> Attempt | None:
        """Return the attempt that an event is about, None if it is over."""
        attempt = self._running.get(uid)
        return attempt if attempt and attempt.token == token else None

    @property
    def idle(self) -> bool:
        """Whether nothing runs."""
        return not self._running

    # -- what happens -------------------------------------------------------------------------

    def arrive(self, job: SimJob) -> None:
        """Let a job wait for the first time."""
        self.records[job.spec.uid] = Record(job, [])
        self.waiting.add(job.spec)
        self._arrivals.add(job.spec)
        self.events += 1

    def end(self, attempt: Attempt, now_s: float) -> None:
        """Let a job end that is done, fails or is out of time."""
        spec = attempt.running.spec
        record = self.records[spec.uid]
        record.state, record.end_s = attempt.end()[1], now_s
        self._ratios.add(now_s - attempt.running.started_s, spec.time_limit_s)
        self._stop(attempt, now_s, final=True)

    def leave(self, attempt: Attempt, now_s: float) -> None:
        """Let a job leave that was told to: it waits again, or goes on with other replicas."""
        spec = self._requeue(attempt, now_s)
        record = self.records[spec.uid]
        for_another = attempt.beneficiary not in {"", spec.uid}
        spec = replace(spec, preempted_count=spec.preempted_count + for_another)
        if not attempt.target:
            record.evictions += 1
            self.waiting.add(spec)
        elif self._holdings.room_for(spec.shape, attempt.target):
            record.resizes += 1
            self._begin(record, spec, attempt.target, now_s)
        else:
            self.waiting.add(replace(spec, promised_s=now_s))

    def regain(self, uid: str, now_s: float) -> bool:
        """Let a resized job have any of its sizes again, and return whether it still is to have."""
        record = self.records[uid]
        if record.end_s is not None or now_s < record.resized_until_s:
            return False
        most = record.most(now_s)
        if attempt := self._running.get(uid):
            spec = replace(attempt.running.spec, replicas_max=most)
            attempt.running = replace(attempt.running, spec=spec)
            self._show(attempt)
        else:
            self.waiting.size(record.job.spec.submitted_s, uid, most)
        return True

    def change(self, change: NodeChange, now_s: float) -> None:
        """Let a node go or come back; what is lost with it waits again."""
        node = self._holdings.mark(change.node, change.note)
        self._capacity.append(Capacity(now_s, self._holdings.capacity()))
        gone = [
            attempt
            for attempt in self._running.values()
            if change.loses_jobs and any(r.node == node for r in attempt.running.replicas)
        ]
        for attempt in gone:
            spec = self._requeue(attempt, now_s)
            record = self.records[spec.uid]
            wait_s = back_off_s(record.losses)
            self.waiting.add(replace(spec, not_before_s=now_s + wait_s) if wait_s else spec)
            record.losses += 1

    def _requeue(self, attempt: Attempt, now_s: float) -> JobSpec:
        """Stop an attempt before its end, and return what its job asks for from now on."""
        attempt.save_due(now_s)
        spec = attempt.running.spec
        record, lost_s = self.records[spec.uid], attempt.lost_s(now_s)
        record.lost_s += lost_s
        record.lost_device_s += lost_s * attempt.device_milli() / 1000
        record.safe, record.state = attempt.safe, End.WAITING
        self._stop(attempt, now_s, final=False)
        return replace(spec, replicas_max=record.most(now_s), not_before_s=0.0)

    def _stop(self, attempt: Attempt, now_s: float, *, final: bool) -> None:
        """Free what an attempt holds, and book it as the portal's ledger does."""
        spec, span = attempt.running.spec, attempt.span(now_s, final=final, lost=not final)
        if attempt.beneficiary:
            self._leaving[attempt.beneficiary] -= 1
        del self._running[spec.uid], self._shown[spec.uid]
        self._saving.pop(spec.uid, None)
        self._frozen = None
        self.elastic -= _is_elastic(attempt.job.spec)
        self._holdings.give_back(spec.shape, attempt.running.replicas)
        self._spans.append(span)
        book, start_s = self._usage.book, span.start_s
        book(span.tenant, CPU_FLAVOR, span.cpu_milli, start_s, now_s=now_s)
        book(span.tenant, span.flavor, span.device_milli, start_s, now_s=now_s)
        self.events += 1

    # -- what is decided ----------------------------------------------------------------------

    def carry_out(self, plan: Plan, now_s: float) -> None:
        """Do what a plan says.

        Raises:
            InvalidPlanError: it cannot be done.
        """
        try:
            for preempt in plan.preempts:
                self._tell(preempt.uid, (), preempt.beneficiary, now_s)
            for start in plan.starts:
                self._start(start, now_s)
            for resize in plan.resizes:
                self._tell(resize.uid, resize.replicas, resize.beneficiary, now_s)
        except (KeyError, IndexError) as unknown:
            raise InvalidPlanError(f"the plan speaks of what is not there: {unknown}") from unknown
        self._end_promises(now_s)

    def _end_promises(self, now_s: float) -> None:
        """Take back promises that came to nothing, as the portal does: all has been freed for it.

        Yet the cycle that saw it did not start the job.
        """
        for submitted_s, uid in self.waiting.promised():
            if not self._leaving[uid]:
                self.waiting.take_back(submitted_s, uid, now_s=now_s)

    def _tell(
        self, uid: str, target: tuple[ReplicaPlacement, ...], beneficiary: str, now_s: float
    ) -> None:
        """Tell a job to leave for another; with a target, to go on with that afterwards."""
        self._holdings.check(target)
        attempt = self._running[uid]
        if beneficiary and beneficiary != uid:
            submitted_s = self.records[beneficiary].job.spec.submitted_s
            self.waiting.promise(submitted_s, beneficiary, now_s=now_s)
        if attempt.running.ending_s is not None:
            return
        attempt.beneficiary = beneficiary
        if beneficiary:
            self._leaving[beneficiary] += 1
        if attempt.job.saves_when_told:
            attempt.save(now_s)
        ending_s, held = now_s + self._pace.grace_s, attempt.running.replicas
        keeps = without(held, without(held, target))  # replicas without devices may be equal
        attempt.running = replace(attempt.running, ending_s=ending_s, keeps=keeps)
        attempt.target = target
        if target:
            self._keep_size(attempt, len(target), now_s)
        self._show(attempt)
        heappush(self.heap, (ending_s, LEAVE, uid, attempt.token))

    def _keep_size(self, attempt: Attempt, count: int, now_s: float) -> None:
        """Let a job have no more than so many replicas for a while, from the order on."""
        spec, until_s = attempt.running.spec, now_s + self._pace.keep_size_s
        record = self.records[spec.uid]
        record.resized_to, record.resized_until_s = count, until_s
        most = max(record.most(now_s), len(attempt.running.replicas))
        attempt.running = replace(attempt.running, spec=replace(spec, replicas_max=most))
        heappush(self.heap, (until_s, REGAIN, spec.uid, 0))

    def _start(self, start: Start, now_s: float) -> None:
        record = self.records[start.uid]
        spec = self.waiting.take(record.job.spec.submitted_s, start.uid)
        record.starts.append(now_s)
        self._begin(record, spec, start.replicas, now_s)

    def _begin(
        self, record: Record, spec: JobSpec, replicas: tuple[ReplicaPlacement, ...], now_s: float
    ) -> None:
        """Let a job hold some replicas and run from its last checkpoint."""
        self._holdings.take(spec.shape, replicas, spec.uid)
        spec = replace(spec, promised_s=0.0) if spec.promised_s else spec
        if spec.replicas_max < len(replicas):  # it was resized to fewer before
            spec = replace(spec, replicas_max=len(replicas))
        saved_s = now_s if record.job.checkpoint_every_s else None
        running = RunningJob(spec, replicas, now_s, checkpointed_s=saved_s)
        self._tokens += 1
        flavor = self._holdings.flavor(replicas)
        attempt = Attempt.begin(record.job, running, flavor, safe=record.safe, token=self._tokens)
        self._running[spec.uid] = attempt
        if record.job.checkpoint_every_s:
            self._saving[spec.uid] = None
        self._show(attempt)
        self.elastic += _is_elastic(record.job.spec)
        record.state = End.RUNNING
        self.events += 1
        self._plan(attempt)

    def _show(self, attempt: Attempt) -> None:
        self._shown[attempt.running.spec.uid] = attempt.running
        self._frozen = None

    def _plan(self, attempt: Attempt) -> None:
        """Note what will happen to an attempt that begins."""
        uid, end_s = attempt.running.spec.uid, attempt.end()[0]
        if end_s < math.inf:
            heappush(self.heap, (end_s, END, uid, attempt.token))

    # -- the end ------------------------------------------------------------------------------

    def result(self, end_s: float, cycles: int) -> Result:
        """Return what was seen; what still runs is cut at the end."""
        still = [attempt.span(end_s, final=False, lost=False) for attempt in self._running.values()]
        spans = sorted([*self._spans, *still], key=lambda span: (span.end_s, span.uid))
        return Result(
            begin_s=self._world.now_s,
            end_s=end_s,
            jobs=tuple(self.records[uid].history() for uid in sorted(self.records)),
            spans=tuple(spans),
            capacity=tuple(self._capacity),
            events=self.events,
            cycles=cycles,
        )


def _is_elastic(spec: JobSpec) -> bool:
    return spec.replicas_max > spec.replicas_min


MOVES = {
    END: Stage.end,
    LEAVE: Stage.leave,
}
"""What an event of an attempt does."""
