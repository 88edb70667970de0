"""Discrete events over the very function that decides in production.

    world   = Snapshot(...)                     # fleet, tenants, memory; nothing waits or runs
    jobs    = [SimJob(spec, work=3600.0), ...]  # what users ask for, and how it really behaves
    result  = simulate(world, jobs, by_policy(Policy(strategy="rules")))
    summary = metrics.totals(result)

What happens, and in this order where it happens at the same instant: a job ends (done, failed or
at its time limit); a job that was told to leave does; a node changes; a job arrives; a cycle runs.
Each of them asks for a cycle, and cycles keep a least distance, as the loop does; while jobs wait
one runs at least every `Pace.wake_s`. A cycle is skipped where nothing waits and nothing elastic
runs (`Pace.idle_too` asks for it all the same). A checkpoint is no event: whoever looks, or stops a
job, finds the last one that was due.

The decider is any function (snapshot, now_s) -> Plan: `by_policy` gives the product's own,
`baselines` has others. A plan's starts, preempts and resizes are carried out; of `pending` only the
expected starts are read, so that a baseline may leave it empty. A snapshot's pending jobs come in
order of submit time and uid. What a decider gets does not change afterwards: it may keep it.

A job that is preempted keeps what it holds for `Pace.grace_s` (`RunningJob.ending_s`), then waits
again; the beneficiary waits with `promised_s` until it starts, or until a cycle has not started it
though all have left. A job that is resized is told likewise, and then starts anew from its last
checkpoint, with the replicas that it was given; where they are no longer free it waits. For
`Pace.keep_size_s` it is given no more than those. Either has one more `preempted_count` where it
was for another. A baseline may leave the beneficiary empty.
Decayed usage, runtime ratios and the mix of what has arrived are kept as the portal keeps them
(`usage`); a decider that never looks at the mix says so (`decider.looks_at_mix`).

The same world, jobs, decider and pace give the same result, whatever order the jobs come in.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop

from scheduler.core.plan import Plan
from scheduler.core.snapshot import Snapshot
from scheduler.simulate.decider import Decider, Watch, by_policy, looks_at_mix
from scheduler.simulate.errors import EndlessSimulationError, InvalidSimulationError
from scheduler.simulate.jobs import NodeChange, SimJob, checked_changes, checked_jobs
from scheduler.simulate.pace import Pace
from scheduler.simulate.result import Eta, Result
from scheduler.simulate.stage import MOVES, NODE, REGAIN, Stage

__all__ = ["Pace", "by_policy", "simulate"]

_QUIET_WAKES = 20
"""So many times the wait for the next cycle is doubled when nothing can happen but a decision."""

_MOST_AT_ONCE = 1000
"""More cycles at one instant than this (there is no least distance then) will never end."""


def simulate(
    world: Snapshot,
    jobs: Iterable[SimJob],
    decider: Decider,
    *,
    pace: Pace | None = None,
    changes: Iterable[NodeChange] = (),
    watch: Watch | None = None,
    past_use: Mapping[tuple[str, str], float] | None = None,
) -> Result:
    """Return what becomes of jobs on a fleet under a decider.

    Args:
        world: the fleet with everything free, the tenants, and the memory (`usage_decayed`,
            `runtime_ratios`, `demand_mix`) at `world.now_s`, when it begins; nothing waits or runs.
        jobs: in any order.
        decider: who decides.
        pace: when cycles run.
        changes: what befalls the nodes, in any order.
        watch: is shown every cycle.
        past_use: (tenant, flavor) -> decayed use at the begin, of which `usage_decayed` is the
            most of each tenant; where it is not known see `usage.DecayedUsage`.

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
    run = _Run(world, arrivals, befall, decider, pace=pace, watch=watch, past_use=past_use or {})
    return run.play()


class _Run:
    """One simulation while it runs."""

    def __init__(
        self,
        world: Snapshot,
        arrivals: Sequence[SimJob],
        changes: Sequence[NodeChange],
        decider: Decider,
        *,
        pace: Pace,
        watch: Watch | None,
        past_use: Mapping[tuple[str, str], float],
    ) -> None:
        self._decider, self._pace, self._watch = decider, pace, watch
        self._with_mix = looks_at_mix(decider)
        self._arrivals, self._arrived = arrivals, 0
        self._changes = changes
        self._stage = Stage(world, pace, past_use)
        self._stage.heap = [(c.at_s, NODE, c.node, i) for i, c in enumerate(changes)]
        self._unanswered: set[str] = set()
        self._seen_s = world.now_s
        self._last_cycle_s, self._next_cycle_s = -math.inf, math.inf
        self._cycles = self._quiet = self._at_once = 0

    def play(self) -> Result:
        """Let everything happen, in order of time, and return what was seen."""
        until_s = self._pace.until_s
        while (now_s := self._next_s()) < math.inf and now_s <= until_s:
            self._happen(now_s)
            if self._next_cycle_s <= now_s:
                self._cycle(now_s)
        end_s = max(self._seen_s, until_s) if until_s < math.inf else self._seen_s
        return self._stage.result(end_s, self._cycles)

    def _next_s(self) -> float:
        heap, next_s = self._stage.heap, self._next_cycle_s
        if heap and heap[0][0] < next_s:
            next_s = heap[0][0]
        if self._arrived < len(self._arrivals):
            next_s = min(next_s, self._arrivals[self._arrived].spec.submitted_s)
        return next_s

    def _happen(self, now_s: float) -> None:
        """Let all events of an instant happen; each asks for a cycle."""
        stage, arrivals = self._stage, self._arrivals
        heap = stage.heap
        while heap and heap[0][0] <= now_s:
            _, kind, uid, token = heappop(heap)
            if kind == NODE:
                stage.change(self._changes[token], now_s)
                self._ask(now_s)
            elif kind == REGAIN:
                if stage.regain(uid, now_s):
                    self._ask(now_s)
            elif attempt := stage.attempt(uid, token):
                MOVES[kind](stage, attempt, now_s)
                self._ask(now_s)
        while (k := self._arrived) < len(arrivals) and arrivals[k].spec.submitted_s <= now_s:
            self._arrived += 1
            self._unanswered.add(arrivals[k].spec.uid)
            stage.arrive(arrivals[k])
            self._ask(now_s)

    def _ask(self, now_s: float) -> None:
        """Ask for a cycle, as early as the pace allows."""
        self._seen_s, self._quiet = now_s, 0
        soon_s = max(now_s, self._last_cycle_s + self._pace.least_s)
        self._next_cycle_s = min(self._next_cycle_s, soon_s)

    def _cycle(self, now_s: float) -> None:
        self._at_once = self._at_once + 1 if now_s == self._last_cycle_s else 0
        self._last_cycle_s, self._next_cycle_s = now_s, math.inf
        stage = self._stage
        if not (stage.waiting or stage.elastic or (self._pace.idle_too and not stage.idle)):
            return
        self._cycles += 1
        if self._cycles > self._pace.most_cycles or self._at_once > _MOST_AT_ONCE:
            raise EndlessSimulationError(f"{self._cycles} cycles, and it is not over at {now_s}")
        snapshot = stage.freeze(now_s, with_mix=self._with_mix)
        plan = self._decider(snapshot, now_s)
        if self._watch:
            self._watch(snapshot, plan)
        stage.carry_out(plan, now_s)
        if plan.starts:
            self._seen_s = now_s
        self._note_expected(plan, now_s)
        self._plan_wake(plan, now_s)

    def _plan_wake(self, plan: Plan, now_s: float) -> None:
        """Ask for a cycle after a while, as time alone changes the order and ends delays.

        Where only a decision could make anything happen, the while is doubled, and in the end
        those who still wait are taken to wait for ever.
        """
        stage = self._stage
        needed = stage.waiting or (self._pace.idle_too and not stage.idle)
        if not needed or not self._pace.wake_s:
            return
        alone = not stage.heap and self._arrived == len(self._arrivals)
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
                self._stage.records[told.uid].eta = Eta(
                    now_s, told.expected_start_p50_s, told.expected_start_p90_s, told.code
                )
        self._unanswered.clear()
