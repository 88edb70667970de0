"""How fast a class of jobs runs on a flavor, learnt from the same work done on several.

Source: Gavel (Narayanan et al., OSDI 2020): throughput per (job type, accelerator type), normalised
per type, is what a heterogeneity-aware policy needs to know.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import TypeAlias

from scheduler.core.errors import InvalidSnapshotError

Throughputs: TypeAlias = Mapping[tuple[str, str], float]
"""(job class, flavor) -> throughput against the class's fastest flavor, in 0..1."""

LEAST_WORKS = 3
"""So many works must have run on both of two flavors before they are compared."""


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


def learn(runs: Iterable[Run], *, least: int = LEAST_WORKS) -> dict[tuple[str, str], float]:
    """Return the throughputs that complete runs of the same work show.

    Of each class the flavor that most works ran on is the reference (the first name on a tie). A
    flavor's speed is the median, over the works that ran on both, of the mean run time on the
    reference over the mean run time on the flavor. Speeds are divided by the largest of the class.
    Flavors with fewer than `least` works in common with the reference are left out, and so is a
    class of which only the reference is left: it says nothing of any other.

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
        (job_class, flavor): speed
        for job_class in sorted(times)
        for flavor, speed in _speeds(times[job_class], least).items()
    }


def _speeds(times: Mapping[str, Mapping[str, list[float]]], least: int) -> dict[str, float]:
    """Return flavor -> speed against the fastest; `times` is flavor -> work -> run times."""
    reference = min(times, key=lambda flavor: (-len(times[flavor]), flavor))
    speeds = {reference: 1.0}
    for flavor in sorted(times.keys() - {reference}):
        both = sorted(times[flavor].keys() & times[reference].keys())
        if len(both) >= least:
            speeds[flavor] = median(
                fmean(times[reference][work]) / fmean(times[flavor][work]) for work in both
            )
    fastest = max(speeds.values())
    return {f: speed / fastest for f, speed in speeds.items()} if len(speeds) > 1 else {}
