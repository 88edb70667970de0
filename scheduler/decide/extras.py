"""What elastic jobs get beyond what their tenant owns: only when all owners had their turn.

An elastic job whose tenant owns a part of what it could have starts with that part, or with its
least size. The rest would be borrowed, and to be given back as soon as an owner asks who comes up
later in the same cycle; each time the job would begin anew from its last checkpoint. So the rest
is handed out, in the order of the starts, when nobody comes up any more who is within its quota.
Jobs that may not be evicted hold only what is their own anyway, and those whose replicas must stand
to each other in some way are placed at once.

Source: KAI docs/elastic: what is above the least size is given, and taken back, apart from it.
"""

from dataclasses import replace

from scheduler.core.plan import Start
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import JobSpec
from scheduler.decide.feasibility import ANY
from scheduler.decide.placement import Fit
from scheduler.decide.session import Session


def own_part(session: Session, job: JobSpec, fit: Fit) -> Fit:
    """Return the fit, cut to what the tenant owns; no less than the job's least size."""
    if fit.replicas == job.replicas_min or not job.preemptible or stands(job):
        return fit
    own = session.allowance.own_replicas(job, fit.flavor)
    return fit._replace(replicas=min(fit.replicas, max(job.replicas_min, own)))


def stands(job: JobSpec) -> bool:
    """Return whether the job's replicas stand to each other, or to other jobs, in some way."""
    return bool(job.placement_wish == ONE_PER_NODE or job.anti_affinity or job.topology)


def widened(session: Session, job: JobSpec, start: Start) -> Start:
    """Return the start with as many more replicas as there is room for, and take that room.

    Args:
        session: the state, with the start in it.
        job: that was started, as it asked.
        start: what it got.
    """
    has = len(start.replicas)
    more = replace(job, replicas_min=1, replicas_max=job.replicas_max - has)
    fit = session.fit_now(more, [session.flavor_of.get(start.flavor, ANY)])
    if fit is None:
        return start
    added, score = session.take(more, fit)
    mean = (start.score * has + score * len(added)) / (has + len(added))
    return replace(start, replicas=(*start.replicas, *added), score=mean)
