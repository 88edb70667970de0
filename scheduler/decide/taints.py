"""Which taints a job would have to tolerate: none that it could do without."""

from collections.abc import Callable
from itertools import islice

from scheduler.core.snapshot import JobSpec
from scheduler.decide.session import Session

MOST_TAINTS = 64
"""So many sets of taints of a node are tried, as many left out, and so many taints one by one."""


def needed_taints(
    session: Session, job: JobSpec, works: Callable[[frozenset[str]], bool]
) -> frozenset[str]:
    """Return the smallest set of taints of one node that works; empty where nothing does.

    For a gang that no such set serves, or that fewer taints of several nodes do: all taints, less
    each that it can do without (beyond `MOST_TAINTS` some of those stay). Whole nodes are given up
    before single taints, those with the most taints first. The fewest of all that would do is not
    searched for: that is a set cover.

    Order of criteria: how many, then their names.

    Args:
        session: names the nodes' taints.
        job: that does not tolerate them yet.
        works: whether it would do to tolerate a set besides; never less so with a larger one.
    """
    nodes = {frozenset(taints) - job.tolerations for taints in session.layout.taints}
    by_size = sorted(nodes - {frozenset()}, key=_few_first)
    everything = frozenset[str]().union(*by_size)
    if not everything or not works(everything):
        return frozenset()
    found = list(islice(filter(works, by_size[:MOST_TAINTS]), 1))
    if job.replicas_min > 1 or not found:
        single = [frozenset({taint}) for taint in sorted(everything)]
        needed = everything
        for some in (*by_size[: -MOST_TAINTS - 1 : -1], *single[:MOST_TAINTS]):
            needed = needed - some if works(needed - some) else needed
        found.append(needed)
    return min(found, key=_few_first)


def _few_first(taints: frozenset[str]) -> tuple[int, list[str]]:
    return len(taints), sorted(taints)
