"""Gavel's baselines: jobs take turns in rounds, in the order of least attained service or max-min.

In each round some jobs run and the others wait, whose work is saved; what frees within a round is
given to those who wait, in the same order (Gavel leaves it idle until the round ends).

Source: "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020,
section 4.1 (max-min), section 5 (rounds, priorities); its code, policies/max_min_fairness.py and
scheduler.py, _update_priorities and _schedule_jobs_on_workers_helper. Least attained service:
Tiresias, NSDI 2019 (device-seconds so far, the fewest first).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import pulp

from scheduler.core.plan import EvictionCause, Plan, Preempt, Start
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.simulate.baselines import Room, plan_of
from scheduler.simulate.decider import Decider

ROUND_S = 360.0
"""Gavel's time per iteration."""

RESET_S = 1920.0
"""Gavel computes shares anew at most this often."""

Rates = Mapping[str, Mapping[str, float]]
"""uid -> flavor -> steps a second."""


class Share(Protocol):
    """Who runs in a round."""

    def ran(self, job: JobSpec, flavor: str, seconds: float) -> None:
        """Note that a job ran on a flavor."""

    def begin(self, jobs: Sequence[JobSpec], *, now_s: float) -> None:
        """Begin a round with all jobs that are there."""

    def choose(
        self, jobs: Sequence[JobSpec], free: Mapping[str, int], held: Mapping[str, str]
    ) -> dict[str, str]:
        """Return uid -> flavor of the jobs that run, first served first.

        Args:
            jobs: in order of arrival.
            free: flavor -> devices that may be given.
            held: uid -> flavor that a job has now.
        """


class Rounds:
    """Lets jobs take turns as a share says."""

    def __init__(self, name: str, share: Share) -> None:
        self._name, self._share, self._room = name, share, Room()
        self._ends_s = -np.inf
        self._chosen: dict[str, str] = {}
        self._was: list[tuple[JobSpec, str]] = []
        self._was_s = 0.0

    def decide(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        for job, flavor in self._was:
            self._share.ran(job, flavor, now_s - self._was_s)
        held = {job.spec.uid: snapshot.fleet.flavor_held(job.replicas) for job in snapshot.running}
        self._room.enter(snapshot.fleet)
        preempts: list[Preempt] = []
        if now_s >= self._ends_s:
            preempts = self._begin(snapshot, held, now_s)
            starts = self._starts(snapshot.pending)
        else:
            starts = self._starts(snapshot.pending)
            starts += self._fill(snapshot, {start.uid for start in starts})
        self._remember(snapshot, starts, held, now_s)
        plan = plan_of(snapshot, self._name, starts, now_s=now_s)
        return replace(plan, preempts=tuple(preempts))

    def _begin(self, snapshot: Snapshot, held: Mapping[str, str], now_s: float) -> list[Preempt]:
        """Choose who runs in a new round, and return who has to stop."""
        self._ends_s = now_s + ROUND_S
        specs = [*snapshot.pending, *(job.spec for job in snapshot.running)]
        specs.sort(key=lambda job: (job.submitted_s, job.uid))
        self._share.begin(specs, now_s=now_s)
        self._chosen = self._share.choose(specs, _capacity(snapshot), held)
        return [
            Preempt(uid, "", EvictionCause.PREEMPTED)
            for uid, flavor in held.items()
            if self._chosen.get(uid) != flavor
        ]

    def _starts(self, pending: Sequence[JobSpec]) -> list[Start]:
        """Return the starts of those whose turn it is."""
        waiting = {job.uid: job for job in pending}
        asked = [(waiting[uid], flavor) for uid, flavor in self._chosen.items() if uid in waiting]
        starts = [self._room.start(replace(job, flavors=(flavor,))) for job, flavor in asked]
        return [start for start in starts if start]

    def _fill(self, snapshot: Snapshot, started: set[str]) -> list[Start]:
        """Return the starts of others on what is free within a round."""
        rest = [job for job in snapshot.pending if job.uid not in started]
        if not rest:
            return []
        more = self._share.choose(rest, self._room.devices_free(), {})
        self._chosen |= more
        jobs = {job.uid: job for job in rest}
        starts = [
            self._room.start(replace(jobs[uid], flavors=(flavor,))) for uid, flavor in more.items()
        ]
        return [start for start in starts if start]

    def _remember(
        self, snapshot: Snapshot, starts: Sequence[Start], held: Mapping[str, str], now_s: float
    ) -> None:
        jobs = {job.uid: job for job in snapshot.pending}
        self._was = [(job.spec, held[job.spec.uid]) for job in snapshot.running]
        self._was += [(jobs[start.uid], start.flavor) for start in starts]
        self._was_s = now_s


def _capacity(snapshot: Snapshot) -> dict[str, int]:
    fleet = snapshot.fleet
    counts = np.bincount(fleet.device_flavor, minlength=len(fleet.flavors)).tolist()
    return {flavor.name: n for flavor, n in zip(fleet.flavors, counts, strict=True)}


class LeastAttained:
    """Who has had the fewest device-seconds goes first, wherever there is most room."""

    def __init__(self) -> None:
        self._attained = Counter[str]()

    def ran(self, job: JobSpec, flavor: str, seconds: float) -> None:
        """Note that a job ran, on whatever."""
        del flavor
        self._attained[job.uid] += int(1000 * seconds * job.replicas_min)

    def begin(self, jobs: Sequence[JobSpec], *, now_s: float) -> None:
        """Nothing is kept from round to round but what was attained."""

    def choose(
        self, jobs: Sequence[JobSpec], free: Mapping[str, int], held: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the jobs that run; who runs stays where it is, if there is room."""
        left, chosen = Counter(free), dict[str, str]()
        for job in sorted(jobs, key=lambda job: self._attained[job.uid]):
            fits = [name for name in job.flavors if left[name] >= job.replicas_min]
            if fits:
                here = held.get(job.uid, "")
                flavor = here if here in fits else max(fits, key=lambda name: (left[name], name))
                chosen[job.uid] = flavor
                left[flavor] -= job.replicas_min
        return chosen


class JobClass(NamedTuple):
    """Jobs that are alike to the linear program."""

    rates: tuple[float, ...]
    devices: int


class MaxMin:
    """Equal normalised throughput for all, as much as there can be; flavors by the throughput.

    Args:
        rates: of all jobs.
        flavors: flavor -> devices, fastest first.
    """

    def __init__(self, rates: Rates, flavors: Mapping[str, int]) -> None:
        self._rates, self._flavors = rates, flavors
        self._share: dict[str, tuple[float, ...]] = {}
        self._of_job = Counter[tuple[str, str]]()
        self._of_flavor = Counter[str]()
        self._known: frozenset[str] = frozenset()
        self._reset_s = -np.inf

    def ran(self, job: JobSpec, flavor: str, seconds: float) -> None:
        """Note that a job ran on a flavor."""
        ms = int(1000 * seconds)
        self._of_job[job.uid, flavor] += ms
        self._of_flavor[flavor] += ms * job.replicas_min

    def begin(self, jobs: Sequence[JobSpec], *, now_s: float) -> None:
        """Compute the shares anew where other jobs are there than before."""
        there = frozenset(job.uid for job in jobs)
        if there != self._known and now_s - self._reset_s >= RESET_S:
            self._known, self._reset_s = there, now_s
            self._of_job.clear()
            self._of_flavor.clear()
            self._share = self._shares(jobs)

    def _shares(self, jobs: Sequence[JobSpec]) -> dict[str, tuple[float, ...]]:
        """Return uid -> share of time on each flavor; equal jobs share alike."""
        classes: dict[JobClass, list[str]] = {}
        for job in jobs:
            rates = tuple(self._rates[job.uid].get(name, 0.0) for name in self._flavors)
            classes.setdefault(JobClass(rates, job.replicas_min), []).append(job.uid)
        kinds = sorted(classes)
        counts = [len(classes[kind]) for kind in kinds]
        shares = max_min_shares(kinds, counts, list(self._flavors.values()))
        return {
            uid: share for kind, share in zip(kinds, shares, strict=True) for uid in classes[kind]
        }

    def choose(
        self, jobs: Sequence[JobSpec], free: Mapping[str, int], held: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the jobs that run: flavor by flavor, who has had least of its share first."""
        del held
        left, chosen = Counter(free), dict[str, str]()
        for k, flavor in enumerate(self._flavors):
            for job in sorted(jobs, key=lambda job: (-self._priority(job, k, flavor), job.uid)):
                runs = flavor in job.flavors and left[flavor] >= job.replicas_min
                if runs and job.uid not in chosen:
                    chosen[job.uid] = flavor
                    left[flavor] -= job.replicas_min
        return chosen

    def _priority(self, job: JobSpec, k: int, flavor: str) -> float:
        """Return a job's share over the fraction of the flavor's time that it has had."""
        share = self._share[job.uid][k] if job.uid in self._share else 0.0
        had, all_had = self._of_job[job.uid, flavor], self._of_flavor[flavor]
        return share * all_had / had if had else share * 1e9


def max_min_shares(
    kinds: Sequence[JobClass], counts: Sequence[int], devices: Sequence[int]
) -> list[tuple[float, ...]]:
    """Return (kinds, flavors) shares of time that make the least normalised throughput largest.

    A job's throughput is divided by what it would have if every device's time were divided
    equally, and multiplied by its devices, as in Gavel. Among the best the sum decides, a little.

    Args:
        kinds: of jobs.
        counts: how many jobs of each.
        devices: of each flavor.
    """
    problem = pulp.LpProblem("max_min", pulp.LpMaximize)
    least = problem.add_variable("least", 0)
    cells = {
        (i, k): problem.add_variable(f"x_{i}_{k}", 0, 1)
        for i, kind in enumerate(kinds)
        for k, rate in enumerate(kind.rates)
        if rate > 0
    }
    gains = []
    for i, kind in enumerate(kinds):
        mean = sum(r * n for r, n in zip(kind.rates, devices, strict=True)) / sum(devices)
        terms = {k: cells[i, k] for k in range(len(devices)) if (i, k) in cells}
        gain = pulp.lpSum(kind.rates[k] * kind.devices / mean * x for k, x in terms.items())
        gains.append(counts[i] * gain)
        problem += gain >= least
        problem += pulp.lpSum(terms.values()) <= 1
    for k, count in enumerate(devices):
        held = (counts[i] * kinds[i].devices * x for (i, at), x in cells.items() if at == k)
        problem += pulp.lpSum(held) <= count
    problem += least + 1e-4 / max(sum(counts), 1) * pulp.lpSum(gains)
    problem.solve(pulp.HiGHS(msg=False, threads=1))  # HiGHS keeps to the first number it is told
    return [
        tuple(
            float(cells[i, k].value() or 0.0) if (i, k) in cells else 0.0
            for k in range(len(devices))
        )
        for i in range(len(kinds))
    ]


def least_attained() -> Decider:
    """Return least attained service in rounds."""
    return Rounds("las", LeastAttained()).decide


def max_min(rates: Rates, flavors: Mapping[str, int]) -> Decider:
    """Return heterogeneity-aware max-min in rounds; flavors fastest first."""
    return Rounds("max_min", MaxMin(rates, flavors)).decide
