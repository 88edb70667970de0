"""How fast a class of jobs runs on a flavor, learnt from the same work done on several.

Source: Gavel (Narayanan et al., OSDI 2020): throughput per (job type, accelerator type), normalised
per type, is what a heterogeneity-aware policy needs to know.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple, TypeAlias

from scheduler.core.errors import InvalidSnapshotError

Throughputs: TypeAlias = Mapping[tuple[str, str], float]
"""(job class, flavor) -> throughput against the class's fastest flavor, in 0..1."""

LEAST_RUNS = 3
"""So many runs on each of two flavors, of works that ran on both, before they are compared."""


@dataclass(frozen=True, slots=True)
class Run:
    """One complete run of a work: of equal command, shape and number of replicas.

    Attributes:
        job_class: class of the job.
        work: key of what was done; runs of equal key did the same.
        flavor: that it ran on.
        run_s: seconds from start to success, > 0.
    """

    job_class: str
    work: str
    flavor: str
    run_s: float


class Measured(NamedTuple):
    """What runs say of a class on a flavor.

    Attributes:
        throughput: against the class's fastest flavor, in 0..1, not 0.
        works: how many works ran there that ran on the reference, too.
        runs: how many runs those were, there.
    """

    throughput: float
    works: int
    runs: int


def learn(runs: Iterable[Run], *, least: int = LEAST_RUNS) -> dict[tuple[str, str], Measured]:
    """Return the throughputs that complete runs of the same work show, by class and flavor.

    Of each class the flavor that most works ran on is the reference (the first name on a tie). A
    flavor's speed is the median, over the works that ran on both, of the mean run time on the
    reference over the mean run time on the flavor. Speeds are divided by the largest of the class.
    Flavors are left out where the works in common with the reference have fewer than `least` runs
    on either of the two, and so is a class of which only the reference is left: it says nothing of
    any other.

    Raises:
        InvalidSnapshotError: a run took no time, or a number that is none.
    """
    times: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in runs:
        if not 0 < run.run_s < float("inf"):
            raise InvalidSnapshotError(f"run_s of work {run.work!r} is {run.run_s}")
        of_class = times.setdefault(run.job_class, defaultdict(lambda: defaultdict(list)))
        of_class[run.flavor][run.work].append(run.run_s)
    return {
        (job_class, flavor): measured
        for job_class in sorted(times)
        for flavor, measured in _measured(times[job_class], least).items()
    }


Times: TypeAlias = Mapping[str, Mapping[str, list[float]]]
"""Flavor -> work -> run times."""


def _measured(times: Times, least: int) -> dict[str, Measured]:
    """Return flavor -> what runs say of it, of one class."""
    reference = min(times, key=lambda flavor: (-len(times[flavor]), flavor))
    speeds, compared = {reference: 1.0}, {reference: set[str]()}
    for flavor in sorted(times.keys() - {reference}):
        both = times[flavor].keys() & times[reference].keys()
        if min(_runs(times, flavor, both), _runs(times, reference, both)) >= least:
            compared[flavor] = both
            compared[reference] |= both
            speeds[flavor] = median(
                fmean(times[reference][work]) / fmean(times[flavor][work]) for work in both
            )
    if len(speeds) == 1:
        return {}
    fastest = max(speeds.values())
    return {
        flavor: Measured(speed / fastest, len(works), _runs(times, flavor, works))
        for (flavor, speed), works in zip(speeds.items(), compared.values(), strict=True)
    }


def _runs(times: Times, flavor: str, works: Collection[str]) -> int:
    return sum(len(times[flavor][work]) for work in works)
