"""Discrete events over the very function that decides in production.

    world   = Snapshot(...)                     # fleet, tenants, memory; nothing waits or runs
    jobs    = [SimJob(spec, work=3600.0), ...]  # what users ask for, and how it really behaves
    result  = simulate(world, jobs, by_policy(Policy(strategy="rules")))
    summary = metrics.totals(result)

What happens, and in this order where it happens at the same instant: a checkpoint is written; a job
ends (done, failed or at its time limit); a job that was told to end leaves and goes back to the
queue; a node changes; a job arrives; a cycle runs. Each of them but a checkpoint asks for a cycle,
and cycles keep a least distance, as the loop does; while jobs wait one runs at least every
`Pace.wake_s`. A cycle is skipped where nothing waits and nothing elastic runs.

The decider is any function (snapshot, now_s) -> Plan: `by_policy` gives the product's own,
`baselines` has others. A plan's starts, preempts and resizes are carried out; of `pending` only the
expected starts are read, so that a baseline may leave it empty. A snapshot's pending jobs come in
order of submit time and uid. What a decider gets does not change afterwards: it may keep it.

A job that is preempted keeps what it holds for `Pace.grace_s` (`RunningJob.ending_s`), then waits
again with one more `preempted_count`; the beneficiary waits with `promised_s` until it starts.
Decayed usage and runtime ratios are kept as the portal keeps them (`usage`).

The same world, jobs, decider and pace give the same result, whatever order the jobs come in.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from heapq import heappop, heappush

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import Plan, Preempt, Resize, Start
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import RunningJob, Snapshot
from scheduler.simulate.attempt import Attempt
from scheduler.simulate.decider import Decider, Watch, by_policy
from scheduler.simulate.errors import EndlessSimulationError, InvalidSimulationError
from scheduler.simulate.holdings import Holdings
from scheduler.simulate.jobs import NodeChange, SimJob, checked_changes, checked_jobs
from scheduler.simulate.pace import Pace
from scheduler.simulate.records import Record
from scheduler.simulate.result import Capacity, End, Eta, Result, Span
from scheduler.simulate.usage import DecayedUsage, RuntimeRatios
from scheduler.simulate.waiting import Waiting

__all__ = ["Pace", "by_policy", "simulate"]

_CHECKPOINT, _END, _LEAVE, _NODE = range(4)

_QUIET_WAKES = 20
"""So many times the wait for the next cycle is doubled when nothing can happen but a decision."""


def simulate(
    world: Snapshot,
    jobs: Iterable[SimJob],
    decider: Decider,
    *,
    pace: Pace | None = None,
    changes: Iterable[NodeChange] = (),
    watch: Watch | None = None,
) -> Result:
    """Return what becomes of jobs on a fleet under a decider.

    Args:
        world: the fleet with everything free, the tenants, and the memory (`usage_decayed`,
            `runtime_ratios`) at `world.now_s`, when it begins; nothing waits or runs.
        jobs: in any order.
        decider: who decides.
        pace: when cycles run.
        changes: what befalls the nodes, in any order.
        watch: is shown every cycle.

    Raises:
        InvalidSimulationError: a job, a change or the pace makes no sense.
        EndlessSimulationError: `pace.most_cycles` were not enough.
        InvalidPlanError: a plan cannot be carried out: it places what is not free, or speaks of
            jobs that do not wait or run.
    """
    pace = pace or Pace()
    if world.pending or world.running:
        raise InvalidSimulationError("a simulation begins with nothing waiting or running")
    if not math.isfinite(world.now_s):
        raise InvalidSimulationError(f"a simulation cannot begin at {world.now_s}")
    arrivals = checked_jobs(jobs, begin_s=world.now_s)
    befall = checked_changes(changes, world)
    run = _Run(world, arrivals, befall, decider, pace=pace, watch=watch)
    run.play()
    return run.result()


_MOST_AT_ONCE = 1000
"""More cycles at one instant than this (there is no least distance then) will never end."""


class _Run:
    """One simulation while it runs."""

    def __init__(
        self,
        world: Snapshot,
        arrivals: list[SimJob],
        changes: Iterable[NodeChange],
        decider: Decider,
        *,
        pace: Pace,
        watch: Watch | None,
    ) -> None:
        self._world, self._decider, self._pace, self._watch = world, decider, pace, watch
        self._arrivals, self._arrived = arrivals, 0
        self._changes = list(changes)
        self._heap = [(c.at_s, _NODE, c.node, i) for i, c in enumerate(self._changes)]
        self._holdings = Holdings(world.fleet)
        self._usage = DecayedUsage(world.fleet, world.usage_decayed, now_s=world.now_s)
        self._ratios = RuntimeRatios(world.runtime_ratios)
        self._waiting, self._running = Waiting(), dict[str, Attempt]()
        self._shown: dict[str, RunningJob] = {}  # of each attempt, what decisions see
        self._records: dict[str, Record] = {}
        self._unanswered: set[str] = set()
        self._spans: list[Span] = []
        self._capacity = [Capacity(world.now_s, self._holdings.capacity())]
        self._seen_s = world.now_s
        self._last_cycle_s, self._next_cycle_s = -math.inf, math.inf
        self._tokens = self._events = self._cycles = self._quiet = self._elastic = 0
        self._at_once = 0

    # -- time ---------------------------------------------------------------------------------

    def play(self) -> None:
        """Let everything happen, in order of time."""
        until_s = self._pace.until_s
        while (now_s := self._next_s()) < math.inf and now_s <= until_s:
            self._happen(now_s)
            if self._next_cycle_s <= now_s:
                self._cycle(now_s)
        if until_s < math.inf:
            self._seen_s = max(self._seen_s, until_s)

    def _next_s(self) -> float:
        next_s = self._next_cycle_s
        if self._heap and self._heap[0][0] < next_s:
            next_s = self._heap[0][0]
        if self._arrived < len(self._arrivals):
            next_s = min(next_s, self._arrivals[self._arrived].spec.submitted_s)
        return next_s

    def _happen(self, now_s: float) -> None:
        """Let all events of an instant happen."""
        heap, arrivals = self._heap, self._arrivals
        while heap and heap[0][0] <= now_s:
            _, kind, uid, token = heappop(heap)
            if kind == _NODE:
                self._change(self._changes[token], now_s)
            elif (attempt := self._running.get(uid)) and attempt.token == token:
                _MOVES[kind](self, attempt, now_s)
        while (k := self._arrived) < len(arrivals) and arrivals[k].spec.submitted_s <= now_s:
            self._arrived += 1
            self._arrive(arrivals[k], now_s)

    def _happened(self, now_s: float) -> None:
        """Count an event of a job, and ask for a cycle."""
        self._events += 1
        self._ask(now_s)

    def _ask(self, now_s: float) -> None:
        self._seen_s, self._quiet = now_s, 0
        soon_s = max(now_s, self._last_cycle_s + self._pace.least_s)
        self._next_cycle_s = min(self._next_cycle_s, soon_s)

    # -- events -------------------------------------------------------------------------------

    def _arrive(self, job: SimJob, now_s: float) -> None:
        uid = job.spec.uid
        self._records[uid] = Record(job, [])
        self._unanswered.add(uid)
        self._waiting.add(job.spec)
        self._happened(now_s)

    def _checkpoint(self, attempt: Attempt, now_s: float) -> None:
        attempt.save(now_s)
        self._show(attempt)
        self._events += 1
        self._plan_checkpoint(attempt)

    def _end(self, attempt: Attempt, now_s: float) -> None:
        spec = attempt.running.spec
        record = self._records[spec.uid]
        record.state, record.end_s = attempt.end()[1], now_s
        self._ratios.add(now_s - attempt.running.started_s, spec.time_limit_s)
        self._stop(attempt, now_s, final=True)

    def _leave(self, attempt: Attempt, now_s: float) -> None:
        """Let a job go that was told to end for another, and put it back into the queue."""
        record = self._records[attempt.running.spec.uid]
        record.evictions += 1
        spec = attempt.running.spec
        self._requeue(attempt, now_s)
        self._waiting.add(replace(spec, preempted_count=spec.preempted_count + 1))

    def _change(self, change: NodeChange, now_s: float) -> None:
        node = self._holdings.mark(change.node, change.note)
        self._capacity.append(Capacity(now_s, self._holdings.capacity()))
        gone = [
            attempt
            for attempt in self._running.values()
            if change.loses_jobs and any(r.node == node for r in attempt.running.replicas)
        ]
        for attempt in gone:
            self._records[attempt.running.spec.uid].losses += 1
            self._requeue(attempt, now_s)
            self._waiting.add(attempt.running.spec)
        self._ask(now_s)

    def _requeue(self, attempt: Attempt, now_s: float) -> None:
        record = self._records[attempt.running.spec.uid]
        self._lose(record, attempt, now_s)
        record.safe, record.state = attempt.safe, End.WAITING
        self._stop(attempt, now_s, final=False)

    def _lose(self, record: Record, attempt: Attempt, now_s: float) -> None:
        """Book the work that has to be done again."""
        lost_s = attempt.lost_s(now_s)
        record.lost_s += lost_s
        record.lost_device_s += lost_s * attempt.device_milli() / 1000

    def _stop(self, attempt: Attempt, now_s: float, *, final: bool) -> None:
        """Free what an attempt holds, and book it as the portal's ledger does."""
        spec, replicas = attempt.running.spec, attempt.running.replicas
        del self._running[spec.uid], self._shown[spec.uid]
        self._elastic -= spec.replicas_max > spec.replicas_min
        self._holdings.give_back(spec.shape, replicas)
        self._close(attempt, now_s, final=final)
        self._happened(now_s)

    def _close(self, attempt: Attempt, now_s: float, *, final: bool) -> None:
        span = attempt.span(now_s, final=final)
        self._spans.append(span)
        book, start_s = self._usage.book, span.start_s
        book(span.tenant, CPU_FLAVOR, span.cpu_milli, start_s, now_s=now_s)
        book(span.tenant, span.flavor, span.device_milli, start_s, now_s=now_s)

    # -- decisions ----------------------------------------------------------------------------

    def _cycle(self, now_s: float) -> None:
        self._at_once = self._at_once + 1 if now_s == self._last_cycle_s else 0
        self._last_cycle_s, self._next_cycle_s = now_s, math.inf
        if not self._waiting and not self._elastic:
            return
        self._cycles += 1
        if self._cycles > self._pace.most_cycles or self._at_once > _MOST_AT_ONCE:
            raise EndlessSimulationError(f"{self._cycles} cycles, and it is not over at {now_s}")
        snapshot = self._freeze(now_s)
        plan = self._decider(snapshot, now_s)
        if self._watch:
            self._watch(snapshot, plan)
        self._carry_out(plan, now_s)
        self._note_expected(plan, now_s)
        self._plan_wake(plan, now_s)

    def _freeze(self, now_s: float) -> Snapshot:
        return replace(
            self._world,
            now_s=now_s,
            fleet=self._holdings.freeze(),
            pending=self._waiting.freeze(),
            running=tuple(self._shown.values()),
            usage_decayed=self._usage.now(now_s),
            runtime_ratios=self._ratios.now(),
        )

    def _plan_wake(self, plan: Plan, now_s: float) -> None:
        """Ask for a cycle after a while, as time alone changes the order and ends delays.

        Where only a decision could make anything happen, the while is doubled, and in the end
        those who still wait are taken to wait for ever.
        """
        if not self._waiting or not self._pace.wake_s:
            return
        alone = not self._heap and self._arrived == len(self._arrivals)
        self._quiet += alone and not (plan.starts or plan.preempts or plan.resizes)
        if self._quiet <= _QUIET_WAKES:
            wake_s = now_s + self._pace.wake_s * 2.0 ** max(0, self._quiet - 1)
            self._next_cycle_s = min(self._next_cycle_s, wake_s)

    def _note_expected(self, plan: Plan, now_s: float) -> None:
        """Keep the expected start that each job is given in its first cycle."""
        if not self._unanswered:
            return
        for told in plan.pending:
            if told.uid in self._unanswered:
                self._records[told.uid].eta = Eta(
                    now_s, told.expected_start_p50_s, told.expected_start_p90_s, told.code
                )
        self._unanswered.clear()

    def _carry_out(self, plan: Plan, now_s: float) -> None:
        try:
            for preempt in plan.preempts:
                self._preempt(preempt, now_s)
            self._resize(plan.resizes, now_s)
            for start in plan.starts:
                self._start(start, now_s)
        except (KeyError, IndexError) as unknown:
            raise InvalidPlanError(f"the plan speaks of what is not there: {unknown}") from unknown

    def _preempt(self, preempt: Preempt, now_s: float) -> None:
        attempt = self._running[preempt.uid]
        beneficiary = self._records[preempt.beneficiary].job.spec
        self._waiting.promise(beneficiary.submitted_s, beneficiary.uid, now_s=now_s)
        if attempt.running.ending_s is not None:
            return
        if attempt.job.saves_when_told:
            attempt.save(now_s)
        ending_s = now_s + self._pace.grace_s
        attempt.running = replace(attempt.running, ending_s=ending_s)
        self._show(attempt)
        heappush(self._heap, (ending_s, _LEAVE, preempt.uid, attempt.token))

    def _resize(self, resizes: Iterable[Resize], now_s: float) -> None:
        """Free what all of them hold, then let each take what it holds afterwards."""
        moved = [(self._running[resize.uid], resize) for resize in resizes]
        for attempt, _ in moved:
            self._holdings.give_back(attempt.running.spec.shape, attempt.running.replicas)
        for attempt, resize in moved:
            spec = attempt.running.spec
            record = self._records[spec.uid]
            self._holdings.take(spec.shape, resize.replicas, spec.uid)
            self._lose(record, attempt, now_s)
            self._close(attempt, now_s, final=False)
            record.resizes += 1
            flavor, self._tokens = self._holdings.flavor(resize.replicas), self._tokens + 1
            attempt.resize(resize.replicas, flavor, now_s=now_s, token=self._tokens)
            self._show(attempt)
            self._plan_end(attempt)
            if resize.beneficiary:
                beneficiary = self._records[resize.beneficiary].job.spec
                self._waiting.promise(beneficiary.submitted_s, beneficiary.uid, now_s=now_s)
            self._events += 1

    def _start(self, start: Start, now_s: float) -> None:
        record = self._records[start.uid]
        spec = self._waiting.take(record.job.spec.submitted_s, start.uid)
        if spec.promised_s:
            spec = replace(spec, promised_s=0.0)
        self._holdings.take(spec.shape, start.replicas, spec.uid)
        saved_s = now_s if record.job.checkpoint_every_s else None
        running = RunningJob(spec, start.replicas, now_s, checkpointed_s=saved_s)
        self._tokens += 1
        attempt = Attempt.begin(
            record.job, running, start.flavor, safe=record.safe, token=self._tokens
        )
        self._running[spec.uid] = attempt
        self._show(attempt)
        self._elastic += spec.replicas_max > spec.replicas_min
        record.starts.append(now_s)
        record.state = End.RUNNING
        self._events += 1
        self._seen_s = now_s
        self._plan_end(attempt)

    def _show(self, attempt: Attempt) -> None:
        self._shown[attempt.running.spec.uid] = attempt.running

    def _plan_end(self, attempt: Attempt) -> None:
        uid, ending_s = attempt.running.spec.uid, attempt.running.ending_s
        end_s = attempt.end()[0]
        if end_s < math.inf:
            heappush(self._heap, (end_s, _END, uid, attempt.token))
        if ending_s is not None:
            heappush(self._heap, (ending_s, _LEAVE, uid, attempt.token))
        self._plan_checkpoint(attempt)

    def _plan_checkpoint(self, attempt: Attempt) -> None:
        at_s = attempt.next_checkpoint_s()
        if at_s < attempt.end()[0]:
            heappush(self._heap, (at_s, _CHECKPOINT, attempt.running.spec.uid, attempt.token))

    # -- the end ------------------------------------------------------------------------------

    def result(self) -> Result:
        """Return what was seen."""
        end_s = self._seen_s
        still = [attempt.span(end_s, final=False) for attempt in self._running.values()]
        spans = sorted([*self._spans, *still], key=lambda span: (span.end_s, span.uid))
        return Result(
            begin_s=self._world.now_s,
            end_s=end_s,
            jobs=tuple(self._records[uid].history() for uid in sorted(self._records)),
            spans=tuple(spans),
            capacity=tuple(self._capacity),
            events=self._events,
            cycles=self._cycles,
        )


_MOVES = {_CHECKPOINT: _Run._checkpoint, _END: _Run._end, _LEAVE: _Run._leave}  # noqa: SLF001
