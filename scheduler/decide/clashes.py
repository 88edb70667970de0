"""Which constraints clash: the named groups that nothing can meet together, and their numbers.

Two kinds of clashes can be in an input. What runs may pass a limit that was cut since: then nothing
more starts against that limit, and nothing has to stop. And what a job asks for may be impossible
together, though each part alone is possible: no flavor that is fast enough is one that its tenant
owns. The second kind is narrowed down by a deletion filter.

Source: Chinneck and Dravnieks 1991, Locating Minimal Infeasible Constraint Sets in Linear Programs
(ORSA Journal on Computing 3:2), the deletion filter: drop each constraint once, and keep it only if
what is left becomes feasible without it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from scheduler.core.plan import Clash
from scheduler.core.resources import may_be_given
from scheduler.core.snapshot import JobSpec
from scheduler.decide.feasibility import ANY
from scheduler.decide.power import MICRO
from scheduler.decide.session import Session

MOST_JOBS, MOST_LIMITS = 20, 50
"""So many refused jobs are looked into, and so many limits that were passed are named."""

GroupT = TypeVar("GroupT")


def deletion_filter(
    groups: Sequence[GroupT], feasible: Callable[[Sequence[GroupT]], bool]
) -> tuple[GroupT, ...]:
    """Return groups that cannot hold together, while all but any one of them can; () = all can.

    Args:
        groups: constraint groups; of several answers, the one that keeps the later ones is found.
        feasible: whether some of the groups can hold together; with fewer of them it stays so.
    """
    kept = list(groups)
    if feasible(kept):
        return ()
    for group in groups:
        without = [one for one in kept if one is not group]
        if not feasible(without):
            kept = without
    return tuple(kept)


def of_job(session: Session, job: JobSpec) -> Clash | None:
    """Return what a job asks for that can never be had together, None if there is nothing."""
    met = _met(session, job)
    flavors = range(len(session.snapshot.fleet.flavors)) if job.shape.devices else (ANY,)

    def feasible(groups: Sequence[str]) -> bool:
        return any(all(met[name](flavor) for name in groups) for flavor in flavors)

    found = deletion_filter(tuple(met), feasible)
    if not found:
        return None
    numbers = _numbers(session, job)
    return Clash(found, job.uid, {name: numbers[name] for name in found})


def _met(session: Session, job: JobSpec) -> Mapping[str, Callable[[int], bool]]:
    """Return group -> whether a flavor (by index) meets it for the smallest gang."""
    least, devices = job.replicas_min, job.shape.devices
    return {
        "nodes": lambda f: session.empty_room(job, f) >= least,
        "quota": lambda f: session.allowance.replicas_ever(job, f) >= least,
        "power_cap": lambda f: session.power.ever(job, f),
        "flavors": lambda f: f == ANY or may_be_given(session.flavor_name(f), job.flavors, devices),
        "min_throughput": lambda f: (
            f == ANY or session.kinds.throughput(job, f) >= job.min_throughput
        ),
    }


def _numbers(session: Session, job: JobSpec) -> Mapping[str, object]:
    shape = job.shape
    return {
        "nodes": {
            "replicas": job.replicas_min,
            "cpu_milli": shape.cpu_milli,
            "memory_mib": shape.memory_mib,
            "devices": shape.devices,
            "gpu_milli": shape.gpu_milli,
        },
        "quota": {"tenant": job.tenant},
        "power_cap": {"cap_w": session.policy.power_cap_w},
        "flavors": {"asked": list(job.flavors)},
        "min_throughput": {"asked": job.min_throughput},
    }


def of_limits(session: Session) -> tuple[Clash, ...]:
    """Return the limits that what runs passes already, as after a cut."""
    found: list[Clash] = []
    held_uw, cap_uw = session.profile.power_uw(0, 1), session.power.cap_uw
    if cap_uw is not None and held_uw > cap_uw:
        watts = {"held_w": held_uw / MICRO, "cap_w": session.policy.power_cap_w}
        found.append(Clash(("running", "power_cap"), "", watts))
    tree, usage = session.tree, session.profile.ledger.usage[0]
    for flavor, f in tree.flavors.items():
        for n in np.flatnonzero(usage[f]).tolist():
            used, most = int(usage[f, n]), tree.potential_at(tree.trees[f], n)
            if used > most:
                whose = {"tenant": tree.slugs[n], "flavor": flavor}
                numbers = whose | {"used_milli": used, "most_milli": most}
                found.append(Clash(("running", "quota"), "", numbers))
    return tuple(found[:MOST_LIMITS])


def of_input(session: Session, refused: Sequence[JobSpec]) -> tuple[Clash, ...]:
    """Return the clashes of a cycle's input.

    Args:
        session: the cycle's state.
        refused: jobs that can never run as they are, though nothing in them is a mistake.
    """
    of_jobs = (of_job(session, job) for job in refused[:MOST_JOBS])
    return (*of_limits(session), *(clash for clash in of_jobs if clash is not None))
