"""Who may lose at all: the running jobs that a policy leaves open, as arrays, in order.

Order of criteria: lower priority first, then who loses the least work (device-seconds since its
last checkpoint; core-seconds for jobs without devices), then who started last, then uid.

Source: Kueue pkg/scheduler/preemption/common/ordering.go (lowest priority, then most recent); KEP
477 and KAI min-runtime for the work that is lost, and for the replicas beyond the smallest gang.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.policy import PreemptionPolicy
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import BoolArray, IntArray, RunningJob
from scheduler.decide.backfill import Cells, cells_of
from scheduler.decide.feasibility import ANY
from scheduler.decide.holdings import by_limit
from scheduler.decide.scoring import FloatArray
from scheduler.decide.session import Session


@dataclass(frozen=True, slots=True)
class Losers:
    """The running jobs that may be evicted or shrunk, in the order in which they are to be.

    Attributes:
        jobs: the jobs.
        flavors: what the indices of `main` name: the fleet's flavors, then `cpu`.
        tenant: (jobs,) index in the tree.
        priority: (jobs,) value of the priority class.
        main: (jobs,) the flavor that each is judged in.
        amount, cpu: (jobs,) milli-units of that flavor and of CPU that one replica is charged.
        replicas: (jobs,) how many each has.
        extra: (jobs,) how many of them it can do without; 0 where it may not be shrunk.
        rested: (jobs,) it ran for long enough since it last began, anew or with another size.
        evictable: (jobs,) it was not evicted too often yet, and is rested.
        lost: (jobs,) work that it loses, device-seconds or core-seconds.
        cells: what they hold.
        against: (classes, classes) 1 where two never share a device (`Foes`).
    """

    jobs: tuple[RunningJob, ...]
    flavors: tuple[str, ...]
    tenant: IntArray
    priority: IntArray
    main: IntArray
    amount: IntArray
    cpu: IntArray
    replicas: IntArray
    extra: IntArray
    rested: BoolArray
    evictable: IntArray
    lost: FloatArray
    cells: Cells
    against: IntArray

    def leave_alone(self, uid: str) -> None:
        """Let nothing more be taken from a job in this cycle."""
        at = next(i for i, job in enumerate(self.jobs) if job.spec.uid == uid)
        self.extra[at] = self.evictable[at] = 0


def losers_of(session: Session, at_s: float | None = None) -> Losers:
    """Return who may lose at all: preemptible, not told to end, and running for long enough.

    The least run time protects the smallest gang only: who has just grown can be shrunk at once, so
    that nobody waits for what a job took because it was idle. But with its own tenant a job shares
    only once it is rested (`Claim`): each time costs it the work since its last checkpoint.

    Who would have ended by the time at which somebody evicted now is gone need not be evicted.

    Args:
        session: the cycle's state.
        at_s: when they are to have run for long enough, epoch seconds; now by default.
    """
    policy, now_s = session.policy.preemption, session.now_s
    at_s = now_s if at_s is None else at_s
    ends_s = by_limit(now_s)
    open_to_it = (
        job
        for job in session.snapshot.running
        if job.spec.preemptible
        and job.ending_s is None
        and job.replicas
        and job.spec.tenant in session.tree.index
        and (_ran_enough(job, policy, at_s) or len(job.replicas) > job.spec.replicas_min)
        and ends_s(job.spec, job.started_s) > session.notice_s
    )
    jobs = sorted(open_to_it, key=lambda job: _order(job, now_s))
    return _as_arrays(session, jobs, policy, at_s)


def lost_work(job: RunningJob, now_s: float) -> float:
    """Return the work lost if a job ends now: its device-seconds since it was last safe.

    Core-seconds for a job without devices.
    """
    since_s = job.started_s if job.checkpointed_s is None else job.checkpointed_s
    shape = job.spec.shape
    each = shape.device_milli / WHOLE_MILLI if shape.devices else shape.cpu_milli / 1000
    return max(0.0, now_s - max(since_s, job.started_s)) * each * len(job.replicas)


def _order(job: RunningJob, now_s: float) -> tuple[int, float, float, str]:
    return job.spec.priority, lost_work(job, now_s), -job.started_s, job.spec.uid


def _ran_enough(job: RunningJob, policy: PreemptionPolicy, at_s: float) -> bool:
    return at_s - job.started_s >= policy.min_runtime_s


def _as_arrays(
    session: Session, jobs: Sequence[RunningJob], policy: PreemptionPolicy, at_s: float
) -> Losers:
    flavors = (*(flavor.name for flavor in session.snapshot.fleet.flavors), CPU_FLAVOR)
    held = [session.held.flavor_held(job) for job in jobs]
    specs = [job.spec for job in jobs]
    rested = np.array([_ran_enough(job, policy, at_s) for job in jobs], dtype=np.bool_)
    return Losers(
        jobs=tuple(jobs),
        flavors=flavors,
        tenant=ints([session.tree.index[spec.tenant] for spec in specs]),
        priority=ints([spec.priority for spec in specs]),
        main=ints([len(flavors) - 1 if flavor == ANY else flavor for flavor in held]),
        amount=ints(
            [
                spec.shape.cpu_milli if flavor == ANY else spec.shape.device_milli
                for spec, flavor in zip(specs, held, strict=True)
            ]
        ),
        cpu=ints([spec.shape.cpu_milli for spec in specs]),
        replicas=ints([len(job.replicas) for job in jobs]),
        extra=ints([max(0, len(job.replicas) - job.spec.replicas_min) for job in jobs]),
        rested=rested,
        evictable=rested * ints([spec.preempted_count < policy.most_evictions for spec in specs]),
        lost=np.array([lost_work(job, session.now_s) for job in jobs], dtype=np.float64),
        cells=cells_of(session.layout, session.tree, [session.hold_of(job) for job in jobs]),
        against=session.layout.foes.against,
    )


def ints(values: Sequence[int]) -> IntArray:
    """Return integers as an array."""
    return np.array(values, dtype=np.int64)
