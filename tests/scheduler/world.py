"""A small world in the database, and a real cycle over it with a scripted executor."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from scheduler import loop
from scheduler.execute.base import Binding, LogChunk, Observation, Phase
from scheduler.models import Job, PriorityClass, SchedulingPolicy
from scheduler.services.jobs import job_submit
from scheduler.services.setup import priority_classes_ensure
from scheduler.services.validation import job_request_validate
from telemetry.models import Cluster, Device, Node
from tenants.models import Membership, Tenant

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass
class ScriptedExecutor:
    """Keeps what it was told, and sees what the test says; evicts at once unless `patient`."""

    bound: dict[tuple[str, int], Binding] = field(default_factory=dict)
    evicted: list[tuple[str, int, str]] = field(default_factory=list)
    seen: dict[tuple[str, int], Observation] = field(default_factory=dict)
    graces: dict[tuple[str, int], float] = field(default_factory=dict)
    patient: bool = False
    raises: Exception | None = None
    bind_raises: Exception | None = None
    left: set[tuple[str, int]] = field(default_factory=set)

    def bind(self, binding: Binding, /) -> None:
        if self.bind_raises or self.raises:
            raise self.bind_raises or self.raises  # type: ignore[misc]
        key = (binding.uid, binding.attempt)
        if key not in self.bound:
            self.bound[key] = binding
            self.seen[key] = Observation(*key, phase=Phase.STARTING)

    def evict(self, uid: str, attempt: int, /, *, grace_s: float, reason: str) -> None:
        assert grace_s >= 0
        self.evicted.append((uid, attempt, reason))
        self.graces[uid, attempt] = grace_s
        if (uid, attempt) in self.seen and not self.patient:
            self.says(uid, attempt, Phase.CANCELLED, reason=reason)

    def observe(self, /, *, now_s: float) -> Sequence[Observation]:
        assert now_s > 0
        if self.raises:
            raise self.raises
        return list(self.seen.values())

    def forget(self, uid: str, attempt: int, /) -> None:
        self.seen.pop((uid, attempt), None)

    def log(self, uid: str, attempt: int, /, *, since: int, limit: int) -> LogChunk:
        data = f"{uid}#{attempt}".encode()
        return LogChunk(data[since : since + limit], since, len(data))

    def kept(self) -> Sequence[tuple[str, int]]:
        return sorted(self.left)

    def purge(self, uid: str, attempts: Sequence[int], /) -> None:
        if self.raises:
            raise self.raises
        self.left -= {(uid, attempt) for attempt in attempts}

    def says(self, uid: str, attempt: int, phase: Phase, **more: Any) -> None:
        self.seen[uid, attempt] = Observation(uid=uid, attempt=attempt, phase=phase, **more)


class World:
    """One cluster `c` with node `n`: 4 cores, 8 GiB, 2 devices; tenant `t` with member `mia`."""

    def __init__(self, *, devices: int = 2, strategy: str = "rules") -> None:
        priority_classes_ensure()
        self.now = START
        self.cluster = Cluster.objects.create(slug="c", name="C", kind="simulated")
        SchedulingPolicy.objects.create(cluster=self.cluster, strategy=strategy)
        self.node = self.add_node("n", devices=devices)
        self.tenant = Tenant.objects.create(slug="t", name="T")
        self.user: User = get_user_model().objects.create_user("mia")
        Membership.objects.create(tenant=self.tenant, user=self.user, role="member")
        self.executor = ScriptedExecutor()

    def add_node(self, name: str, *, devices: int = 2) -> Node:
        node = Node.objects.create(
            cluster=self.cluster, name=name, cpu_milli=4000, memory_mib=8192, seen_at=self.now
        )
        for index in range(devices):
            Device.objects.create(
                node=node,
                uid=f"{name}-gpu-{index}",
                index=index,
                vendor="nvidia",
                model="NVIDIA L4",
                flavor="nvidia-l4",
                memory_mib=24576,
                compute_units=121.0,
            )
        return node

    def submit(self, name: str = "job", **fields: Any) -> Job:
        data = {"name": name, "tenant": "t", "cluster": "c", "command": "true", **fields}
        request = job_request_validate(data=data, actor=self.user)
        job, _ = job_submit(actor=self.user, request=request, now=self.now, pending={})
        return job

    def cycle(self, *, after_s: float = 1.0) -> loop.CycleReport:
        self.now += timedelta(seconds=after_s)
        ports = loop.Ports(executor=self.executor, node_lost_after_s=60.0)
        return loop.run_cycle(self.cluster, ports, clock=lambda: self.now, woken=True)

    def says(self, job: Job, phase: Phase, **more: Any) -> None:
        job.refresh_from_db()
        more.setdefault("started_s", self.now.timestamp())
        if phase not in (Phase.STARTING, Phase.RUNNING):
            more.setdefault("finished_s", self.now.timestamp())
        self.executor.says(str(job.pk), job.attempt, phase, **more)

    def state(self, job: Job) -> str:
        job.refresh_from_db()
        return job.state


def default_class() -> PriorityClass:
    return PriorityClass.objects.get(is_default=True)
