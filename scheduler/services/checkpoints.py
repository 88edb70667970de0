"""How much of a running job's work would survive its end."""

from datetime import datetime, timedelta

from scheduler.models import Job, Placement


def safe_until(*, job: Job, placement: Placement, now: datetime) -> datetime | None:
    """Return up to when the work of an attempt is safe; None where its end would lose all of it.

    The newest checkpoint that its executor saw counts; where none was seen, the interval that the
    job declares. What is older than the attempt is of an earlier one: it is safe up to its start.
    """
    started_at = placement.started_at
    if started_at is None:
        return None
    if placement.checkpointed_at is not None:
        return max(started_at, min(placement.checkpointed_at, now))
    if not job.checkpoint_interval_s:
        return None
    interval = timedelta(seconds=job.checkpoint_interval_s / job.cluster.clock_scale)
    return started_at + max(0, (now - started_at) // interval) * interval


def work_lost(*, job: Job, placement: Placement, now: datetime) -> dict[str, int]:
    """Return what an attempt that ends at `now` loses, in the cluster's own seconds.

    Returns:
        lost_s of its running time, and that times what it held: lost_device_s, or lost_core_s of a
        job without devices.
    """
    if placement.started_at is None:
        lost_s = 0.0
    else:
        since = safe_until(job=job, placement=placement, now=now) or placement.started_at
        lost_s = max(0.0, (now - since).total_seconds()) * job.cluster.clock_scale
    milli = job.devices * job.gpu_milli or job.cpu_milli
    held = milli / 1000 * placement.replicas.count()
    unit = "lost_device_s" if job.devices else "lost_core_s"
    return {"lost_s": round(lost_s), unit: round(lost_s * held)}
