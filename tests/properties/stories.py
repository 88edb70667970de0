"""Lets the plans of any world come true: what is told to end ends, and waits again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Fleet, JobSpec, ReplicaPlacement, RunningJob, Snapshot


@dataclass
class Story:
    """One world over time; nobody new arrives.

    Attributes:
        snapshot: as it is now.
        policy: gives the grace.
        targets: uid -> the replicas with which a job goes on that was told to change.
        evictions: (cycle, victim, beneficiary).
        started: (cycle, uid).
    """

    snapshot: Snapshot
    policy: Policy
    cycle: int = 0
    targets: dict[str, tuple[ReplicaPlacement, ...]] = field(default_factory=dict)
    evictions: list[tuple[int, str, str]] = field(default_factory=list)
    started: list[tuple[int, str]] = field(default_factory=list)

    def follow(self, plan: Plan) -> None:
        """Carry a plan out: starts begin at once, who is told to go has its grace."""
        self.cycle += 1
        waiting = {job.uid: job for job in self.snapshot.pending}
        running = {job.spec.uid: job for job in self.snapshot.running}
        now_s = self.snapshot.now_s
        for start in plan.starts:
            spec = replace(waiting.pop(start.uid), promised_s=0.0)
            running[start.uid] = RunningJob(spec, start.replicas, now_s)
            self.started.append((self.cycle, start.uid))
        told = [(p.uid, p.beneficiary, ()) for p in plan.preempts]
        for uid, beneficiary, target in [
            *told,
            *((r.uid, r.beneficiary, r.replicas) for r in plan.resizes),
        ]:
            job = running[uid]
            ends_s = now_s + self.policy.preemption.grace_s
            keeps = tuple((Counter(target) & Counter(job.replicas)).elements())
            running[uid] = replace(job, ending_s=ends_s, keeps=keeps)
            if target:
                self.targets[uid] = target
            else:
                self.evictions.append((self.cycle, uid, beneficiary))
            if beneficiary and not waiting[beneficiary].promised_s:
                waiting[beneficiary] = replace(waiting[beneficiary], promised_s=now_s)
        self._now(list(waiting.values()), list(running.values()))

    def pass_time(self, seconds: float) -> None:
        """Let time pass; jobs end at their limits, told ones at theirs."""
        self.snapshot = replace(self.snapshot, now_s=self.snapshot.now_s + seconds)
        now_s, waiting = self.snapshot.now_s, list(self.snapshot.pending)
        running, resized = list[RunningJob](), list[RunningJob]()
        for job in self.snapshot.running:
            uid, spec = job.spec.uid, job.spec
            if job.started_s + spec.time_limit_s <= now_s:
                self.targets.pop(uid, None)
            elif job.ending_s is None or job.ending_s > now_s:
                running.append(job)
            elif target := self.targets.pop(uid, job.keeps):
                resized.append(RunningJob(spec, target, now_s))
            else:
                often = spec.preempted_count + 1
                waiting.append(replace(spec, preempted_count=often, promised_s=0.0))
        for job in resized:  # others may have taken what was free when it was decided
            if _fits(_held(self.snapshot.fleet, [*running, job])):
                running.append(job)
            else:
                waiting.append(job.spec)
        self._now(waiting, running)

    def _now(self, waiting: Sequence[JobSpec], running: Sequence[RunningJob]) -> None:
        fleet = _held(self.snapshot.fleet, running)
        self.snapshot = replace(
            self.snapshot, fleet=fleet, pending=tuple(waiting), running=tuple(running)
        )

    def in_turn(self) -> list[tuple[str, str]]:
        """Return who was evicted for a job that it had evicted, with no other start since."""
        found = []
        for n, (at, victim, beneficiary) in enumerate(self.evictions):
            for earlier, other, taker in self.evictions[:n]:
                if (other, taker) == (beneficiary, victim):
                    between = [
                        uid
                        for cycle, uid in self.started
                        if earlier <= cycle <= at and uid not in {victim, beneficiary}
                    ]
                    found += [] if between else [(victim, beneficiary)]
        return found


def _fits(fleet: Fleet) -> bool:
    of_nodes = np.minimum(fleet.node_cpu_free_milli, fleet.node_memory_free_mib)
    of_devices = np.minimum(fleet.device_free_milli, fleet.device_free_memory_mib)
    return bool((of_nodes >= 0).all() and (of_devices >= 0).all())


def _held(fleet: Fleet, running: Sequence[RunningJob]) -> Fleet:
    """Return the fleet with what runs held, and nothing else."""
    cpu, memory = fleet.node_cpu_milli.copy(), fleet.node_memory_mib.copy()
    milli, mib = np.full_like(fleet.device_free_milli, 1000), fleet.device_memory_mib.copy()
    for job in running:
        for replica in job.replicas:
            cpu[replica.node] -= job.spec.shape.cpu_milli
            memory[replica.node] -= job.spec.shape.memory_mib
            for device in replica.devices:
                milli[device] -= replica.gpu_milli
                mib[device] -= replica.gpu_memory_mib
    return replace(
        fleet,
        node_cpu_free_milli=cpu,
        node_memory_free_mib=memory,
        device_free_milli=milli,
        device_free_memory_mib=mib,
    )
