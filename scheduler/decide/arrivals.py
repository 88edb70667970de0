"""What has arrived lately, for the placements that keep room for what is likely to come.

Of the last jobs each replica counts, the newest fully, one that is `HALF_LIFE` arrivals older half.

Source: FGD (Weng et al., ATC 2023), typical shapes of the recent workload, here with a decay.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import DemandKind

MOST_ARRIVALS = 4000
"""So many of the last jobs count: the oldest of them a sixteenth."""

HALF_LIFE = 1000.0
"""Jobs after which an arrival counts half."""


class Arrival(NamedTuple):
    """What one job asked for: so many replicas at most, each of a shape, on some flavors."""

    shape: ReplicaShape
    flavors: tuple[str, ...]
    replicas: int


def demand_mix(
    arrivals: Iterable[Arrival], earlier: Sequence[DemandKind] = (), *, since: int = 0
) -> tuple[DemandKind, ...]:
    """Return the mix of what has arrived, in a stable order.

    Args:
        arrivals: the last ones, the newest first; `MOST_ARRIVALS` of them at most.
        earlier: the mix as it was before, where the arrivals of which it was made are not known.
        since: how many jobs have arrived from then on; after `MOST_ARRIVALS` it is forgotten.
    """
    counts: defaultdict[tuple[ReplicaShape, tuple[str, ...]], float] = defaultdict(float)
    for age, (shape, flavors, replicas) in enumerate(arrivals):
        counts[shape, flavors] += replicas * 0.5 ** (age / HALF_LIFE)
    for kind in earlier if since < MOST_ARRIVALS else ():
        counts[kind.shape, kind.flavors] += kind.count * 0.5 ** (since / HALF_LIFE)
    kinds = sorted(counts, key=lambda kind: (_amounts(kind[0]), kind[1]))
    return tuple(DemandKind(*kind, counts[kind]) for kind in kinds)


def _amounts(shape: ReplicaShape) -> tuple[int, ...]:
    host = shape.cpu_milli, shape.memory_mib
    return *host, shape.devices, shape.gpu_milli, shape.gpu_memory_mib
