"""What the runs of jobs that ended teach of classes and flavors."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler import snapshots
from scheduler.estimates import job_estimate
from scheduler.models import Job, LearntThroughput, Placement, ReplicaHold, Throughput
from scheduler.selectors.throughputs import learnt_list, throughput_table
from scheduler.services.learning import throughputs_learn
from scheduler.services.validation import job_request_validate
from telemetry.models import Cluster
from tenants.models import Membership, Tenant
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db

SLOW, FAST = "nvidia-l4", "nvidia-h100-sxm"


@pytest.fixture
def world() -> World:
    world = World()
    Cluster.objects.update(kind="local")
    return world


def ran(world: World, flavor: str, seconds: float, *, command: str = "train", **fields: Any) -> Job:
    """Let a job have run on a flavor for so long, and ended a moment ago."""
    replicas = fields.pop("held", 1)
    changes = {
        name: fields.pop(name) for name in ("state", "attempt", "gpu_milli") if name in fields
    }
    asked: dict[str, Any] = {"devices": 1, "job_class": "lm", "kind": "training"} | fields
    job = world.submit(command=command, **asked)
    placement = Placement.objects.create(
        job=job,
        attempt=1,
        cluster=world.cluster,
        flavor=flavor,
        created_at=world.now,
        released_at=world.now,
    )
    for index in range(replicas):
        ReplicaHold.objects.create(
            placement=placement,
            index=index,
            node=world.node,
            cpu_milli=1,
            memory_mib=1,
            released=True,
        )
    done = {
        "state": "succeeded",
        "attempt": 1,
        "started_at": world.now - timedelta(seconds=seconds),
        "finished_at": world.now,
    }
    Job.objects.filter(pk=job.pk).update(**(done | changes))
    return job


def three(world: World, flavor: str, seconds: float, **fields: Any) -> None:
    for _ in range(3):
        ran(world, flavor, seconds, **fields)


def learnt() -> dict[tuple[str, str, str], tuple[float, int, int]]:
    return {
        (row.tenant.slug, row.job_class, row.flavor): (
            row.throughput,
            row.work_count,
            row.run_count,
        )
        for row in LearntThroughput.objects.select_related("tenant")
    }


def test_the_same_work_on_two_flavors_says_how_fast_they_are(world: World) -> None:
    """400 s against 100 s: a quarter of the speed, by one work that ran three times on each."""
    three(world, SLOW, 400)
    three(world, FAST, 100)
    assert throughputs_learn(now=world.now) == 2
    assert learnt() == {("t", "lm", SLOW): (0.25, 1, 3), ("t", "lm", FAST): (1.0, 1, 3)}
    assert {row.last_run_at for row in LearntThroughput.objects.all()} == {world.now}


SAYS_NOTHING: dict[str, dict[str, Any]] = {
    "another command": {"command": "train --all"},
    "another environment": {"env": {"EPOCHS": "9"}},
    "another class": {"job_class": "cv"},
    "no class": {"job_class": ""},
    "more devices": {"devices": 2},
    "more replicas held": {"held": 2},
    "a part of a device": {"gpu_milli": 500},
    "that failed": {"state": "failed"},
    "that was interrupted": {"attempt": 2},
    "a service": {"kind": "inference"},
}


@pytest.mark.parametrize("other", SAYS_NOTHING.values(), ids=SAYS_NOTHING)
def test_runs_that_cannot_be_compared_teach_nothing(world: World, other: dict[str, Any]) -> None:
    three(world, SLOW, 400)
    three(world, FAST, 100, **other)
    assert throughputs_learn(now=world.now) == 0


def test_a_run_of_less_than_a_minute_and_one_of_long_ago_teach_nothing(world: World) -> None:
    three(world, SLOW, 400)
    three(world, FAST, 59)
    assert throughputs_learn(now=world.now) == 0
    three(world, FAST, 100)
    assert throughputs_learn(now=world.now + timedelta(days=91)) == 0


def test_invented_runs_teach_nothing(world: World) -> None:
    three(world, SLOW, 400)
    three(world, FAST, 100)
    Cluster.objects.update(kind="simulated")
    assert throughputs_learn(now=world.now) == 0


def test_what_is_no_longer_shown_is_forgotten_and_what_is_new_wakes_the_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr("scheduler.services.learning.wake", lambda: woken.append("all"))
    three(world, SLOW, 400)
    three(world, FAST, 100)
    throughputs_learn(now=world.now)
    throughputs_learn(now=world.now)
    assert woken == ["all"]
    assert throughputs_learn(now=world.now + timedelta(days=91)) == 0
    assert woken == ["all", "all"]
    assert not LearntThroughput.objects.exists()


def test_decisions_use_it_for_the_tenant_whose_runs_they_were(world: World) -> None:
    other = Tenant.objects.create(slug="u", name="U")
    Membership.objects.create(tenant=other, user=world.user, role="member")
    three(world, SLOW, 400)
    three(world, FAST, 100)
    throughputs_learn(now=world.now)
    mine, theirs = (world.submit(tenant=t, devices=1, job_class="lm") for t in ("t", "u"))
    snapshot = snapshots.take(cluster=world.cluster, now=world.now).snapshot
    assert snapshot.throughputs == {("lm@t", SLOW): 0.25, ("lm@t", FAST): 1.0}
    classes = {job.uid: job.job_class for job in snapshot.pending}
    assert classes == {str(mine.pk): "lm@t", str(theirs.pk): "lm"}


def test_an_estimate_knows_what_was_learnt(world: World) -> None:
    """Half of the speed is asked for, and the one device here has a quarter."""
    three(world, SLOW, 400)
    three(world, FAST, 100)
    asked = {"name": "j", "tenant": "t", "cluster": "c", "command": "x", "devices": 1}
    asked |= {"job_class": "lm", "min_throughput": 0.5}
    request = job_request_validate(data=asked, actor=world.user)
    assert job_estimate(request=request, now=world.now).verdict == "now"
    throughputs_learn(now=world.now)
    estimate = job_estimate(request=request, now=world.now)
    assert estimate.pending is not None
    assert estimate.pending["code"] == "no_matching_flavor"


def test_what_an_admin_says_of_a_class_counts_instead(world: World) -> None:
    three(world, SLOW, 400)
    three(world, FAST, 100)
    throughputs_learn(now=world.now)
    seen = learnt_list(viewer=world.user)
    assert {vars(row)["overruled"] for row in seen} == {False}
    Throughput.objects.create(job_class="lm", flavor=SLOW, throughput=0.5)
    assert throughput_table() == {("lm", SLOW): 0.5}
    assert {vars(row)["overruled"] for row in seen.all()} == {True}


def test_nobody_else_sees_what_a_tenant_taught(world: World) -> None:
    three(world, SLOW, 400)
    three(world, FAST, 100)
    throughputs_learn(now=world.now)
    Membership.objects.all().delete()
    assert not learnt_list(viewer=world.user).exists()
