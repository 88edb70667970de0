"""Watches a month cycle by cycle and measures who got what, who waited, and what lay idle.

Between two cycles nothing changes that matters here: whatever starts, ends or arrives while
somebody waits asks for a cycle.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.fairness.filling import fair_shares
from benchmarks.fairness.law import Standings, room_by_law, violations
from benchmarks.fairness.month import FLAVOR
from scheduler.core.plan import Plan
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import IntArray, JobSpec, Snapshot, TenantNode
from scheduler.decide.quota import Charge, QuotaLedger, QuotaTree

KEPT_FOR_OTHERS = {WaitReason.RESERVED, WaitReason.WAITING_FOR_PREEMPTED_JOBS}
"""What is free is promised to somebody ahead, or being freed for this very job."""


@dataclass(slots=True)
class Window:
    """One window: per tenant, device-seconds while it asked for more than its fair share.

    What can never run, whatever is free, is not asked for.
    """

    held: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    fair: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    contended_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass(slots=True)
class _State:
    """What holds from one cycle to the next, in devices."""

    at_s: float
    held: Mapping[str, float]
    fair: Mapping[str, float]
    contending: Sequence[str]
    idle: int
    idle_kept: int


class Meter:
    """Call it with each cycle's snapshot and plan, and `close` it at the end.

    Attributes:
        windows: number of the window -> what was measured in it.
        idle_device_s: devices that were free while a job waited that fits on them and in its
            quota, times seconds; `idle_kept_device_s`: the same, kept for somebody ahead of it.
        starved: how long a tenant had a job waiting that it owns the devices for, and none of its
            jobs started; `starved_by_law`: the same while a node would have room for that job with
            those gone whom the laws let go.
        violations: evictions against a law.
    """

    def __init__(
        self,
        tenants: Sequence[TenantNode],
        devices: int,
        window_s: float,
        policy: PreemptionPolicy,
    ) -> None:
        self._tenants, self._devices, self._window_s = tenants, devices, window_s
        self._policy = policy
        self._tree = QuotaTree(tenants)
        self._most = {t.slug: self._tree.potential(t.slug, FLAVOR.name) // 1000 for t in tenants}
        self._owned = {t.slug: t.quotas[FLAVOR.name].nominal // 1000 for t in tenants}
        self._state: _State | None = None
        self._begin_s = 0.0
        self.windows: dict[int, Window] = defaultdict(Window)
        self.idle_device_s = self.idle_kept_device_s = 0.0
        self.starved, self.starved_by_law = Clocks(), Clocks()
        self.violations: list[str] = []

    def __call__(self, snapshot: Snapshot, plan: Plan) -> None:
        """Measure up to this cycle, and note what holds after it."""
        if self._state is None:
            self._begin_s = snapshot.now_s
        self.close(snapshot.now_s)
        started = {start.uid for start in plan.starts}
        waiting = [job for job in snapshot.pending if job.uid not in started]
        specs = [job.spec for job in snapshot.running]
        specs += [job for job in snapshot.pending if job.uid in started]
        held = _devices(specs)
        firm = _devices(spec for spec in specs if not spec.preemptible)
        able = [job for job in waiting if job.shape.devices <= self._most_of(job)]
        asked = held + _devices(able)
        wants = _within_reach(asked, [*specs, *able], self._owned)
        fair = fair_shares(self._tenants, FLAVOR.name, self._devices, wants)
        contending = [slug for slug, share in fair.items() if wants[slug] > share + 1e-6]
        idle, kept = self._idle(snapshot, plan, waiting, held, firm)
        self._state = _State(snapshot.now_s, held, fair, contending, idle, kept)
        self._starvation(snapshot, plan, started, waiting, held)
        if plan.preempts:
            starts = _devices(job for job in snapshot.pending if job.uid in started)
            self.violations += violations(snapshot, plan, self._policy, starts)

    def close(self, now_s: float) -> None:
        """Count what held until now."""
        state = self._state
        if state is None:
            return
        at_s = state.at_s
        self.idle_device_s += state.idle * (now_s - at_s)
        self.idle_kept_device_s += state.idle_kept * (now_s - at_s)
        while at_s < now_s and state.contending:
            k = int((at_s - self._begin_s) // self._window_s)
            until_s = min(now_s, self._begin_s + (k + 1) * self._window_s)
            window, lasted_s = self.windows[k], until_s - at_s
            for slug in state.contending:
                window.held[slug] += state.held[slug] * lasted_s
                window.fair[slug] += state.fair[slug] * lasted_s
                window.contended_s[slug] += lasted_s
            at_s = until_s

    def _most_of(self, job: JobSpec) -> int:
        """Return the most devices that a job of the team could ever have."""
        return self._most[job.tenant] if job.preemptible else self._owned[job.tenant]

    def _idle(
        self,
        snapshot: Snapshot,
        plan: Plan,
        waiting: Iterable[JobSpec],
        held: Counter[str],
        firm: Counter[str],
    ) -> tuple[int, int]:
        """Return devices that the waiting jobs could hold now: in all, and those kept for others.

        Tried one after the other, smallest first, on what the cycle left free.
        """
        free = _free_by_node(snapshot, plan)
        if not free.any():
            return 0, 0
        kept_back = {pending.uid for pending in plan.pending if is_for_others(pending)}
        ledger = QuotaLedger(self._tree)
        for slug, devices in held.items():
            ledger.add(slug, Charge(FLAVOR.name, 1000 * devices))
        idle = kept = 0
        for job in sorted(waiting, key=lambda j: (j.shape.devices, j.submitted_s, j.uid)):
            size = job.shape.devices
            node = int(np.argmax(free))
            if size > free[node]:
                break  # the rest is larger still
            if ledger.available(job.tenant, FLAVOR.name) < 1000 * size:
                continue
            if not job.preemptible:
                if firm[job.tenant] + size > self._owned[job.tenant]:
                    continue
                firm[job.tenant] += size
            ledger.add(job.tenant, Charge(FLAVOR.name, 1000 * size))
            free[node] -= size
            if job.uid in kept_back:
                kept += size
            else:
                idle += size
        return idle, kept

    def _starvation(
        self,
        snapshot: Snapshot,
        plan: Plan,
        started: set[str],
        waiting: Iterable[JobSpec],
        held: Mapping[str, int],
    ) -> None:
        now_s = snapshot.now_s
        served = {job.tenant for job in snapshot.pending if job.uid in started}
        owns = [
            job
            for job in _first_of_each(waiting, plan)
            if held[job.tenant] + job.shape.devices <= self._owned[job.tenant]
        ]
        free = _free_by_node(snapshot, plan).tolist() if owns else []
        standings = Standings(self._tenants, held)
        lawful = [
            job for job in owns if room_by_law(standings, job, snapshot.running, free, self._policy)
        ]
        self.starved.note({job.tenant for job in owns}, served, now_s)
        self.starved_by_law.note({job.tenant for job in lawful}, served, now_s)


class Clocks:
    """Runs a clock per tenant while something holds of it.

    Attributes:
        longest_s: tenant -> longest time of its clock.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self.longest_s: dict[str, float] = {}

    def note(self, holds: set[str], served: set[str], now_s: float) -> None:
        """Note of whom it holds now, and whose clock begins anew."""
        for slug, since_s in self._since.items():
            self.longest_s[slug] = max(self.longest_s.get(slug, 0.0), now_s - since_s)
        kept = {s: since_s for s, since_s in self._since.items() if s in holds - served}
        self._since = dict.fromkeys(sorted(holds), now_s) | kept


def _devices(specs: Iterable[JobSpec]) -> Counter[str]:
    held: Counter[str] = Counter()
    for spec in specs:
        held[spec.tenant] += spec.shape.devices
    return held


def _first_of_each(waiting: Iterable[JobSpec], plan: Plan) -> list[JobSpec]:
    """Return the job of each tenant that comes first; what waits behind it waits for it."""
    place = {pending.uid: pending.position for pending in plan.pending}
    first: dict[str, JobSpec] = {}
    for job in sorted(
        waiting, key=lambda j: (place.get(j.uid, 0), -j.priority, j.submitted_s, j.uid)
    ):
        first.setdefault(job.tenant, job)
    return list(first.values())


def _within_reach(
    asked: Counter[str], jobs: Iterable[JobSpec], owned: Mapping[str, int]
) -> Counter[str]:
    """Return what each team asks for, without what may not be evicted and passes what it owns."""
    firm = _devices(job for job in jobs if not job.preemptible)
    reach = {slug: n - max(0, firm[slug] - owned[slug]) for slug, n in asked.items()}
    return Counter(reach)


def _free_by_node(snapshot: Snapshot, plan: Plan) -> IntArray:
    fleet = snapshot.fleet
    free = fleet.device_free_milli // 1000
    for start in plan.starts:
        for replica in start.replicas:
            free[list(replica.devices)] = 0
    return np.bincount(fleet.device_node, weights=free, minlength=len(fleet.node_names)).astype(
        np.int64
    )


def jain(window: Window, least_s: float) -> tuple[float, float] | None:
    """Return Jain's index of held / fair, and its weight in device-seconds; None = no contest.

    Args:
        window: of a meter.
        least_s: a tenant counts that contended for so long at least.

    Source:
        Jain, Chiu, Hawe, DEC TR-301, 1984: (sum x)^2 / (n sum x^2).
    """
    counted = [slug for slug, s in window.contended_s.items() if s >= least_s]
    ratios = [window.held[slug] / window.fair[slug] for slug in sorted(counted)]
    if len(ratios) < 2 or not any(ratios):
        return None
    index = sum(ratios) ** 2 / (len(ratios) * sum(x * x for x in ratios))
    return index, sum(window.fair[slug] for slug in counted)


def merged(windows: Iterable[Window]) -> Window:
    """Return one window of all."""
    whole = Window()
    for window in windows:
        for slug, lasted_s in window.contended_s.items():
            whole.held[slug] += window.held[slug]
            whole.fair[slug] += window.fair[slug]
            whole.contended_s[slug] += lasted_s
    return whole


def is_for_others(pending: Pending) -> bool:
    """Return whether what a job could use is kept for a job ahead of it, or being freed for it.

    Quota can be, too: what is planned for jobs of its tenant ahead of it that may not be evicted.
    """
    return pending.code in KEPT_FOR_OTHERS or bool(pending.evidence.get("planned_milli"))
