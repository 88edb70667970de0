"""A toy that lets plans come true, cycle by cycle: what is told to end ends, and waits again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import (
    JobSpec,
    ReplicaPlacement,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, world


@dataclass
class Toy:
    """One cluster whose jobs end when their time is up or when they are told to.

    Attributes:
        ends_s: uid -> when a running job ends by itself.
        targets: uid -> the replicas that a told job goes on with.
        evictions: (time, victim, beneficiary) in order.
        started: (time, uid) in order.
    """

    fleet: FleetBuilder
    tenants: Sequence[TenantNode]
    policy: Policy
    now_s: float = NOW_S
    waiting: dict[str, JobSpec] = field(default_factory=dict)
    running: dict[str, RunningJob] = field(default_factory=dict)
    ends_s: dict[str, float] = field(default_factory=dict)
    lasts_s: dict[str, float] = field(default_factory=dict)
    targets: dict[str, tuple[ReplicaPlacement, ...]] = field(default_factory=dict)
    evictions: list[tuple[float, str, str]] = field(default_factory=list)
    started: list[tuple[float, str]] = field(default_factory=list)

    def arrive(self, spec: JobSpec, lasts_s: float) -> None:
        self.waiting[spec.uid] = replace(spec, submitted_s=self.now_s)
        self.lasts_s[spec.uid] = lasts_s

    def snapshot(self) -> Snapshot:
        return world(
            self.fleet,
            list(self.waiting.values()),
            running=list(self.running.values()),
            tenants=self.tenants,
            now_s=self.now_s,
        )

    def pass_time(self, seconds: float) -> None:
        """Let time pass; jobs end, told ones go back to the queue or go on resized."""
        self.now_s += seconds
        for uid in sorted(self.running):
            job = self.running[uid]
            if self.ends_s[uid] <= self.now_s:
                self._leave(uid)
            elif job.ending_s is not None and job.ending_s <= self.now_s:
                self._leave(uid)
                self._go_on(job)

    def _leave(self, uid: str) -> None:
        del self.running[uid], self.ends_s[uid]

    def _go_on(self, job: RunningJob) -> None:
        uid, target = job.spec.uid, self.targets.pop(job.spec.uid, ())
        if target:
            self._run(job.spec, target)
        else:
            count = job.spec.preempted_count + 1
            self.waiting[uid] = replace(job.spec, preempted_count=count, promised_s=0.0)

    def _run(self, spec: JobSpec, replicas: tuple[ReplicaPlacement, ...]) -> None:
        self.running[spec.uid] = RunningJob(replace(spec, promised_s=0.0), replicas, self.now_s)
        self.ends_s[spec.uid] = self.now_s + self.lasts_s[spec.uid]

    def cycle(self) -> tuple[Snapshot, Plan]:
        """Decide, have the plan verified, and carry it out."""
        snapshot = self.snapshot()
        plan = decide(snapshot, self.policy, now_s=self.now_s, budget_s=1.0)
        assert plan.solver.status != "error", plan.solver.note
        verify(snapshot, plan)
        self.carry_out(plan)
        return snapshot, plan

    def carry_out(self, plan: Plan) -> None:
        for start in plan.starts:
            self._run(self.waiting.pop(start.uid), start.replicas)
            self.started.append((self.now_s, start.uid))
        for preempt in plan.preempts:
            self._tell(preempt.uid, preempt.beneficiary, ())
            self.evictions.append((self.now_s, preempt.uid, preempt.beneficiary))
        for resize in plan.resizes:
            self._tell(resize.uid, resize.beneficiary, resize.replicas)

    def _tell(self, uid: str, beneficiary: str, target: tuple[ReplicaPlacement, ...]) -> None:
        job, grace_s = self.running[uid], self.policy.preemption.grace_s
        keeps = tuple((Counter(target) & Counter(job.replicas)).elements())
        self.running[uid] = replace(job, ending_s=self.now_s + grace_s, keeps=keeps)
        if target:
            self.targets[uid] = target
        if beneficiary and not self.waiting[beneficiary].promised_s:
            spec = self.waiting[beneficiary]
            self.waiting[beneficiary] = replace(spec, promised_s=self.now_s)
