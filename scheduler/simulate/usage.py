"""The memory of a site, kept as the portal keeps it: past use, how long jobs ran, what arrived.

The first two are booked when a placement ends, as the ledger is; what still runs counts by what it
holds.
"""

import bisect
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import DemandKind, Fleet, JobSpec
from scheduler.decide.arrivals import MOST_ARRIVALS, Arrival, demand_mix

HALF_LIFE_S = 7 * 86400.0
"""Slurm's PriorityDecayHalfLife."""

_MOST_LIVES = 500.0

RATIO_COUNT = 200
"""So many of the last jobs say how long jobs really run."""


def most_used(past_use: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return tenant -> use of its most used flavor, out of (tenant, flavor) -> use."""
    most: dict[str, float] = {}
    for (tenant, _), used in past_use.items():
        most[tenant] = max(most.get(tenant, 0.0), used)
    return most


class DecayedUsage:
    """Each tenant's past use as a fraction of capacity over one half-life.

    A placement of m milli-units from a to b counts, at the time t, as the integral of
    0.5^((t - x) / half-life) over a..b, divided by the integral of full capacity over all the past:
    m / capacity * (0.5^((t - b) / half-life) - 0.5^((t - a) / half-life)). A tenant's usage is that
    of its most used flavor.

    What a tenant used before the begin adds to what it uses of the same flavor afterwards. Where
    it is not known of which flavor that was, any may have been the most used one: each is taken to
    have begun there. So usage is right at the begin, right on where the tenant goes on with the
    flavor that it used most, and never too low: who has held much does not pass for new.

    Args:
        fleet: for what there is of each flavor.
        start: tenant -> usage at the begin.
        now_s: the begin, epoch seconds.
        past_use: (tenant, flavor) -> the same by flavor; for tenants that it names `start` is not
            looked at.

    Source: Slurm priority_multifactor (decay), KAI time-based fairshare (capacity as the norm).
    """

    def __init__(
        self,
        fleet: Fleet,
        start: Mapping[str, float],
        *,
        now_s: float,
        past_use: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self._capacity = {CPU_FLAVOR: int(fleet.node_cpu_milli.sum())}
        for i, flavor in enumerate(fleet.flavors):
            self._capacity[flavor.name] = WHOLE_MILLI * int((fleet.device_flavor == i).sum())
        self._base_s = now_s
        known = dict(past_use or {})
        self._used = _anywhere(start, self._capacity, known) | known
        self._most = most_used(self._used)

    def book(self, tenant: str, flavor: str, milli: int, start_s: float, *, now_s: float) -> None:
        """Add what a placement held of a flavor from its start until now."""
        capacity = self._capacity.get(flavor, 0)
        if capacity and milli:
            grown = self._grown(now_s)
            share = milli / capacity * (1.0 - 0.5 ** ((now_s - start_s) / HALF_LIFE_S))
            used = self._used.get((tenant, flavor), 0.0) + share * grown
            self._used[tenant, flavor] = used
            self._most[tenant] = max(self._most.get(tenant, 0.0), used)

    def now(self, now_s: float) -> dict[str, float]:
        """Return tenant -> usage."""
        left = 1.0 / self._grown(now_s)
        return {tenant: used * left for tenant, used in self._most.items()}

    def _grown(self, now_s: float) -> float:
        """Return what a share of now is worth at the base: old ones stay, new ones weigh more.

        So a booking costs the same however many tenants there are. The base follows after 500
        half-lives, where numbers would grow too large.
        """
        lives = (now_s - self._base_s) / HALF_LIFE_S
        if lives > _MOST_LIVES:
            left = 0.5**lives
            self._used = {key: used * left for key, used in self._used.items()}
            self._most = {key: used * left for key, used in self._most.items()}
            self._base_s, lives = now_s, 0.0
        return float(2.0**lives)


def _anywhere(
    start: Mapping[str, float], flavors: Iterable[str], known: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """Return the usage of tenants of which no more is known as if it were that of each flavor."""
    told = {tenant for tenant, _ in known}
    unknown = {tenant: used for tenant, used in start.items() if tenant not in told}
    return {(tenant, flavor): used for flavor in flavors for tenant, used in unknown.items()}


_GOLDEN = (math.sqrt(5) - 1) / 2


def _scattered(values: Sequence[float]) -> list[float]:
    """Return values in an order of which every part is spread evenly over all of them.

    Source: multiples of the golden ratio modulo 1 lie as evenly as can be (Knuth, TAOCP 6.4).
    """
    order = sorted(range(len(values)), key=lambda k: k * _GOLDEN % 1.0)
    return [values[k] for k in order]


class RuntimeRatios:
    """Runtimes of the last jobs that ended as parts of their time limits.

    A snapshot has them in order of size, so that nobody knows which are the oldest of those that it
    begins with: they are forgotten evenly, small and large ones.
    """

    def __init__(self, start: tuple[float, ...]) -> None:
        self._last = deque(_scattered(start))
        self._ascending = list(start)
        self._frozen = start

    def add(self, ran_s: float, limit_s: float) -> None:
        """Note a job that ended."""
        ratio = min(1.0, ran_s / limit_s)
        self._last.append(ratio)
        bisect.insort(self._ascending, ratio)
        if len(self._last) > RATIO_COUNT:
            oldest = self._last.popleft()
            del self._ascending[bisect.bisect_left(self._ascending, oldest)]
        self._frozen = ()

    def now(self) -> tuple[float, ...]:
        """Return them, ascending."""
        if not self._frozen and self._ascending:
            self._frozen = tuple(self._ascending)
        return self._frozen


class Arrivals:
    """What the last jobs asked for; worked out where somebody looks, once for each arrival."""

    def __init__(self, start: tuple[DemandKind, ...]) -> None:
        self._earlier = self._frozen = start
        self._last = deque[JobSpec](maxlen=MOST_ARRIVALS)  # the newest first
        self._count, self._counted = 0, 0

    def add(self, spec: JobSpec) -> None:
        """Note a job that arrived."""
        self._last.appendleft(spec)
        self._count += 1

    def now(self) -> tuple[DemandKind, ...]:
        """Return the mix."""
        if self._counted < self._count:
            arrivals = (Arrival(one.shape, one.flavors, one.replicas_max) for one in self._last)
            self._frozen = demand_mix(arrivals, self._earlier, since=self._count)
            self._counted = self._count
        return self._frozen
