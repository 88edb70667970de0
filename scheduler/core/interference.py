"""How fast two classes of jobs run that share a device (MPS), and which never should.

Source: Gavel (Narayanan et al., OSDI 2020), section 3.1 and its colocated throughputs: for each
pair of job types, the throughput of each when both run on one accelerator, against running alone.
"""

from collections.abc import Mapping
from typing import TypeAlias

Pairs: TypeAlias = Mapping[tuple[str, str], tuple[float, float]]
"""(class, class) -> throughput of the first and of the second when they share a device, each
against having the device alone, in 0..1; either order says the same. A class may pair with itself.
"""

LEAST_SHARED = 0.5
"""Whoever takes turns on a device gets one half of it: sharing must not be worse for either."""


def foes_of(pairs: Pairs) -> frozenset[frozenset[str]]:
    """Return the pairs that never share a device, a class that can't bear its like as {class}.

    Pairs that were not measured may share.
    """
    return frozenset(frozenset(pair) for pair, rates in pairs.items() if min(rates) < LEAST_SHARED)
