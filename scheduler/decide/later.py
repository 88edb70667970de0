"""When a job that cannot start now could, and where: the earliest planned start on the profile."""

import math

import numpy as np

from scheduler.core.snapshot import IntArray, JobSpec
from scheduler.decide.feasibility import Free
from scheduler.decide.placement import Fit, Site
from scheduler.decide.session import Session
from scheduler.decide.topology import reach


def fit_later(session: Session, job: JobSpec) -> Fit | None:
    """Return the earliest planned start after now, of the smallest gang; None = never seen.

    What is planned already is left alone, as in conservative backfill.

    Source: Feitelson and Weil 1998 (conservative backfill).
    """
    kind = session.kind(job)
    since_s = session.no_earlier.get(kind, session.now_s)
    times, quick_seen = session.profile.times, False
    for k in range(max(1, session.profile.until(since_s)), len(times)):
        if times[k] == math.inf:
            return None
        for flavor in session.allowed(job):
            counts = session.filter(session.demand(job, flavor)).count(session.profile.row(k))
            counts[session.closed(kind, times[k], times[k])] = 0
            if reach(session.layout, counts, job.topology) < job.replicas_min:
                continue
            if not quick_seen:
                session.no_earlier[kind], quick_seen = times[k], True
            fit = _fit_at(session, job, flavor, k, np.flatnonzero(counts))
            if fit:
                return fit
    return None


def _fit_at(session: Session, job: JobSpec, flavor: int, k: int, nodes: IntArray) -> Fit | None:
    """Return the fit that begins with row k; only on the nodes with room in that row."""
    start_s = session.profile.times[k]
    last = max(k + 1, session.profile.until(start_s + job.time_limit_s))
    if session.allowance.replicas(job, flavor, k, last) < job.replicas_min:
        return None
    part = session.profile.floor(k, last, nodes)
    return fit_in(session, job, flavor, k, nodes=nodes, part=part)


def fit_in(
    session: Session, job: JobSpec, flavor: int, k: int, *, nodes: IntArray, part: Free
) -> Fit | None:
    """Return the fit of the smallest gang that begins with row k, quota left aside.

    Args:
        session: what is left.
        job: the job.
        flavor: index of the flavor.
        k: logical row.
        nodes: that may be used.
        part: what is free on exactly those nodes for as long as the job runs.
    """
    start_s, demand = session.profile.times[k], session.demand(job, flavor)
    wanted, counts = session.filter(demand), np.zeros(session.layout.nodes, dtype=np.int64)
    counts[nodes] = wanted.count(part, nodes)
    kind, end_s = session.kind(job), start_s + job.time_limit_s
    counts[session.closed(kind, start_s, end_s)] = 0
    if reach(session.layout, counts, job.topology) < job.replicas_min:
        return None
    first = session.calendar.kept(kind.mine, start_s, end_s)
    counts = session.narrowed(job, counts, first, job.replicas_min)
    free = Free(*(table.copy() for table in session.profile.row(k)))
    for table, tight in zip(free, part, strict=True):
        table[nodes] = tight
    scorer = session.counts.scorer(demand)
    scores = np.zeros(session.layout.nodes)
    scores[nodes] = scorer.nodes(wanted, part, nodes)
    site = Site(session.layout, wanted, free, counts, scores, scorer, first)
    return Fit(flavor, job.replicas_min, start_s, site)
