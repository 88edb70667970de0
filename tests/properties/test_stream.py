"""Random streams over random fleets and quotas: whatever comes, in whatever order, it holds."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.choices import FINAL_STATES, HOLDING_STATES, Verb
from scheduler.execute.base import ExecutorUnavailableError, Phase
from scheduler.models import DeviceHold, Job, ReplicaHold, SchedulingPolicy
from scheduler.services.jobs import job_cancel
from telemetry.models import Device, Node
from tenants.errors import ConflictError
from tenants.models import Quota
from tests import factories
from tests.scheduler.invariants import assert_sound
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db

FLAVOR = "nvidia-l4"
TENANTS = ("t", "a", "b")
STAYS = {"waiting_for_quota", "exceeds_max_quota", "never_fits", "no_matching_flavor"}
"""Why a job may wait though everything is free and up."""

Step = tuple[str, Any]


@dataclass(frozen=True)
class Request:
    tenant: str
    devices: int
    gpu_milli: int
    replicas: int
    cpu_milli: int
    priority_class: str
    elastic: bool


requests = st.builds(
    Request,
    tenant=st.sampled_from(TENANTS),
    devices=st.sampled_from([0, 1, 1, 2, 3]),
    gpu_milli=st.sampled_from([1000, 1000, 500, 300]),
    replicas=st.sampled_from([1, 1, 1, 2, 3]),
    cpu_milli=st.sampled_from([100, 1000, 2500]),
    priority_class=st.sampled_from(["low", "normal", "high"]),
    elastic=st.booleans(),
)
steps = st.one_of(
    st.tuples(st.just("submit"), requests),
    st.tuples(st.just("submit"), requests),
    st.tuples(st.just("cycle"), st.sampled_from([0.0, 1.0, 20.0, 100.0, -50.0])),
    st.tuples(st.just("cycle"), st.just(1.0)),
    st.tuples(st.just("run"), st.integers(0, 30)),
    st.tuples(st.just("run_all"), st.none()),
    st.tuples(st.just("run_all"), st.none()),
    st.tuples(st.just("end"), st.tuples(st.integers(0, 30), st.sampled_from(
        [Phase.SUCCEEDED, Phase.FAILED, Phase.TIMED_OUT, Phase.LOST, Phase.CANCELLED]))),
    st.tuples(st.just("vanish"), st.integers(0, 30)),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("node"), st.tuples(st.integers(0, 2), st.sampled_from(
        ["lost", "back", "drain", "cordon", "open"]))),
    st.tuples(st.just("sick"), st.integers(0, 8)),
    st.tuples(st.just("executor"), st.booleans()),
    st.tuples(st.just("patience"), st.booleans()),
    st.tuples(st.just("quota"), st.tuples(st.sampled_from(TENANTS), st.integers(0, 6))),
)  # fmt: skip
urgent = st.builds(
    Request,
    tenant=st.sampled_from(TENANTS),
    devices=st.sampled_from([1, 1, 2]),
    gpu_milli=st.just(1000),
    replicas=st.sampled_from([1, 1, 2]),
    cpu_milli=st.just(100),
    priority_class=st.sampled_from(["low", "normal", "high", "high"]),
    elastic=st.booleans(),
)
contended = st.one_of(
    st.tuples(st.just("submit"), urgent),
    st.tuples(st.just("cycle"), st.sampled_from([1.0, 1.0, 6.0])),
    st.tuples(st.just("run_all"), st.none()),
    steps,
)
FULL: list[Step] = [
    *(("submit", Request("t", 1, 1000, 2, 100, "low", elastic)) for elastic in (True, False, True)),
    *(("cycle", 1.0), ("run_all", None), ("cycle", 1.0)),
]
"""A fleet of jobs of low priority, of which two may shrink."""
fleets = st.lists(st.integers(0, 3), min_size=1, max_size=3)
quotas = st.dictionaries(
    st.sampled_from(TENANTS),
    st.tuples(st.integers(0, 6), st.none() | st.integers(0, 3)),
    max_size=3,
)


class Stream:
    """Plays steps on a world, and checks it after each."""

    def __init__(self, devices: list[int], limits: dict[str, tuple[int, int | None]]) -> None:
        self.world = World(devices=devices[0])
        for i, count in enumerate(devices[1:]):
            self.world.add_node(f"m{i}", devices=count)
        SchedulingPolicy.objects.update(
            preempt_by_priority=True, preempt_delay_s=0, preempt_min_runtime_s=0, preempt_grace_s=5
        )
        self.jobs: list[Job] = []
        for slug in ("a", "b"):
            factories.tenant(slug, parent=self.world.tenant)
        for slug, (nominal, borrowing) in limits.items():
            self.set_quota(slug, nominal, borrowing)

    def set_quota(self, slug: str, nominal: int, borrowing: int | None) -> None:
        tenant = type(self.world.tenant).objects.get(slug=slug)
        amounts = {
            "nominal": nominal * 1000,
            "borrowing_limit": None if borrowing is None else borrowing * 1000,
        }
        Quota.objects.update_or_create(
            tenant=tenant, cluster=self.world.cluster, flavor=FLAVOR, defaults=amounts
        )

    def play(self, step: Step) -> None:
        name, value = step
        getattr(self, f"on_{name}")(value)
        assert_sound(jobs=len(self.jobs))

    def on_submit(self, asked: Request) -> None:
        whole = asked.devices != 1
        job = self.world.submit(
            f"job{len(self.jobs)}",
            tenant=asked.tenant,
            devices=asked.devices,
            gpu_milli=1000 if whole else asked.gpu_milli,
            replicas=asked.replicas,
            replicas_min=1 if asked.elastic else asked.replicas,
            cpu_milli=asked.cpu_milli,
            priority_class=asked.priority_class,
        )
        self.jobs.append(job)

    def on_cycle(self, after_s: float) -> None:
        report = self.world.cycle(after_s=after_s)
        self.check_quota(set(report.started))
        for job in Job.objects.filter(state="queued"):
            assert job.pending["code"] != "", "waits without a reason"
        for uid, attempt in self.world.executor.bound:
            assert Job.objects.get(pk=uid).attempt >= attempt
        self.check_promises()

    def check_promises(self) -> None:
        """After a cycle room is still being made for who has a promise; all evictions are told."""
        for job in Job.objects.filter(promised_at__isnull=False):
            assert job.state == "queued", "has its place and a promise, too"
            ending = job.evictions.filter(verb=Verb.EVICT, placement__released_at__isnull=True)
            assert ending.exists(), "is promised what nobody makes room for"
        most = SchedulingPolicy.objects.get().preempt_most_evictions
        for job in Job.objects.prefetch_related("events"):
            made_room = [
                e for e in job.events.all() if e.kind == "state" and "beneficiary" in e.data
            ]
            assert job.preempted_count == len(made_room) <= most
            assert {e.to_state for e in made_room} <= {"queued"}

    def check_quota(self, started: set[str]) -> None:
        held: Counter[str] = Counter()
        for slug, milli in (
            DeviceHold.objects.filter(period__upper_inf=True)
            .values_list("replica__placement__job__tenant__slug")
            .annotate(milli=Sum("gpu_milli"))
        ):
            held[slug] = milli
        lines = {quota.tenant.slug: quota for quota in Quota.objects.select_related("tenant")}
        starters = set(
            Job.objects.filter(pk__in=started, devices__gt=0).values_list("tenant__slug", flat=True)
        )
        if lines and starters:
            owned = sum(line.nominal for line in lines.values())
            assert held.total() <= owned, "the tree holds more than it owns"
            assert starters <= set(lines), "a tenant without quota got a device"
        for slug in starters & {"a", "b"} & set(lines):
            limit = lines[slug].borrowing_limit
            assert limit is None or held[slug] <= lines[slug].nominal + limit, "borrows too much"

    def says(self, number: int, phase: Phase) -> None:
        if self.jobs:
            job = self.jobs[number % len(self.jobs)]
            job.refresh_from_db()
            if (str(job.pk), job.attempt) in self.world.executor.seen:
                self.world.says(job, phase, exit_code=0 if phase == Phase.SUCCEEDED else None)

    def on_run(self, number: int) -> None:
        self.says(number, Phase.RUNNING)

    def on_run_all(self, _none: None) -> None:
        """Let all that starts run; only who runs can make room."""
        for number, job in enumerate(self.jobs):
            if self.world.state(job) == "starting":
                self.says(number, Phase.RUNNING)

    def on_end(self, value: tuple[int, Phase]) -> None:
        self.says(*value)

    def on_vanish(self, number: int) -> None:
        seen = sorted(self.world.executor.seen)
        if seen:
            self.world.executor.forget(*seen[number % len(seen)])

    def on_cancel(self, number: int) -> None:
        if self.jobs:
            job = self.jobs[number % len(self.jobs)]
            ended = Job.objects.get(pk=job.pk).state in FINAL_STATES
            try:
                job_cancel(actor=self.world.user, job=job, now=self.world.now)
            except ConflictError:
                assert ended

    def on_node(self, value: tuple[int, str]) -> None:
        number, what = value
        nodes = Node.objects.order_by("pk")
        row = Node.objects.filter(pk=nodes[number % len(nodes)].pk)
        if what == "lost":
            row.update(state="unknown")
        elif what == "back":
            row.update(state="ready", seen_at=self.world.now)
        else:
            names = {"drain": "draining", "cordon": "cordoned", "open": "open"}
            row.update(scheduling=names[what])

    def on_sick(self, number: int) -> None:
        devices = list(Device.objects.order_by("pk"))
        if devices:
            device = devices[number % len(devices)]
            turned = "healthy" if device.health != "healthy" else "unhealthy"
            Device.objects.filter(pk=device.pk).update(health=turned)

    def on_executor(self, up: bool) -> None:
        self.world.executor.raises = None if up else ExecutorUnavailableError("away")

    def on_patience(self, patient: bool) -> None:
        """Let jobs use their grace, or end as soon as they are told to."""
        self.world.executor.patient = patient

    def on_quota(self, value: tuple[str, int]) -> None:
        if Quota.objects.exists():
            self.set_quota(*value, None)

    def settle(self) -> None:
        """Bring everything up again: then every job ends, or waits for what nobody has."""
        self.on_executor(up=True)
        self.on_patience(patient=False)
        Node.objects.update(state="ready", scheduling="open", seen_at=self.world.now)
        Device.objects.update(health="healthy")
        for _ in range(3 * len(self.jobs) + 4):
            self.on_cycle(20.0)
            for uid, attempt in list(self.world.executor.seen):
                self.world.executor.says(uid, attempt, Phase.SUCCEEDED, exit_code=0)
            if not Job.objects.exclude(state__in=FINAL_STATES).exists():
                break
        assert_sound(jobs=len(self.jobs))
        assert not Job.objects.filter(state__in=HOLDING_STATES).exists(), "stuck"
        codes = Job.objects.filter(state="queued").values_list("pending__code", flat=True)
        assert set(codes) <= STAYS
        assert not ReplicaHold.objects.filter(released=False).exists()
        assert not self.world.executor.seen


def play(devices: list[int], limits: dict[str, tuple[int, int | None]], todo: list[Step]) -> None:
    with transaction.atomic():
        stream = Stream(devices, limits)
        for step in todo:
            stream.play(step)
        stream.settle()
        transaction.set_rollback(True)


quick = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
deep = settings(quick, max_examples=150)


@quick
@given(devices=fleets, limits=quotas, todo=st.lists(steps, min_size=8, max_size=25))
def test_a_stream_of_jobs_and_failures_breaks_nothing(
    devices: list[int], limits: dict[str, tuple[int, int | None]], todo: list[Step]
) -> None:
    play(devices, limits, todo)


@quick
@given(
    devices=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    limits=quotas,
    todo=st.lists(contended, min_size=10, max_size=25),
)
def test_a_stream_in_which_jobs_make_room_breaks_nothing(
    devices: list[int], limits: dict[str, tuple[int, int | None]], todo: list[Step]
) -> None:
    play(devices, limits, FULL + todo)


@pytest.mark.slow
@deep
@given(
    devices=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    limits=quotas,
    todo=st.lists(contended, min_size=10, max_size=50),
)
def test_a_long_stream_in_which_jobs_make_room_breaks_nothing(
    devices: list[int], limits: dict[str, tuple[int, int | None]], todo: list[Step]
) -> None:
    play(devices, limits, FULL + todo)


@pytest.mark.slow
@deep
@given(devices=fleets, limits=quotas, todo=st.lists(steps, min_size=10, max_size=60))
def test_a_long_stream_of_jobs_and_failures_breaks_nothing(
    devices: list[int], limits: dict[str, tuple[int, int | None]], todo: list[Step]
) -> None:
    play(devices, limits, todo)
