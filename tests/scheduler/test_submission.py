"""From what a person typed to a queued job, and what is refused on the way."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError

from scheduler.core.errors import InvalidSnapshotError
from scheduler.decide import cycle
from scheduler.models import Job, JobEvent
from scheduler.services.jobs import job_submit
from scheduler.services.validation import job_request_validate
from scheduler.submission import JobRefusedError, job_as_data, job_ask, job_dry_run
from telemetry.models import Device, Node
from tenants.errors import InvalidValueError, NotAllowedError
from tests import factories
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return World()


def data(**fields: Any) -> dict[str, Any]:
    return {"name": "x", "tenant": "t", "cluster": "c", "command": "true", **fields}


def counts() -> dict[str, int]:
    models = [m for m in apps.get_models() if m._meta.managed]
    return {model._meta.label: model._default_manager.count() for model in models}


def test_what_no_node_could_ever_hold_is_refused_with_a_remedy(world: World) -> None:
    with pytest.raises(JobRefusedError) as refusal:
        job_ask(actor=world.user, data=data(devices=3), now=world.now)
    assert refusal.value.code == "never_fits"
    assert refusal.value.estimate.verdict == "never"
    codes = {remedy["code"]: remedy["params"] for remedy in refusal.value.pending["remedies"]}
    assert codes["fewer_devices"]["devices"] == 2
    assert not Job.objects.exists()


def test_a_dry_run_changes_nothing(world: World) -> None:
    world.submit(devices=2)
    world.cycle()
    before = counts()
    for fields in ({}, {"devices": 2}, {"devices": 3}):
        job_dry_run(actor=world.user, data=data(**fields), now=world.now)
    assert counts() == before


def test_the_estimate_now_is_where_the_job_then_goes(world: World) -> None:
    factories.device(world.node, index=5, flavor="nvidia-l4", uid="n-gpu-5", memory_mib=24576)
    Device.objects.filter(index=1).delete()  # numbers with a gap
    world.submit(devices=1)
    world.cycle()
    _, estimate = job_dry_run(actor=world.user, data=data(devices=1), now=world.now)
    assert estimate.verdict == "now"
    assert estimate.pending is None
    job, _ = job_ask(actor=world.user, data=data(devices=1), now=world.now)
    world.cycle()
    binding = world.executor.bound[str(job.pk), 1]
    assert [
        {"node": r.node, "devices": list(r.device_indices), "flavor": "nvidia-l4"}
        for r in binding.replicas
    ] == [{k: p[k] for k in ("node", "devices", "flavor")} for p in estimate.placement]


def test_the_estimated_wait_is_what_the_cycle_then_says(world: World) -> None:
    world.submit(devices=2, time_limit_s=600)
    world.cycle()
    asked = data(devices=1)
    _, estimate = job_dry_run(actor=world.user, data=asked, now=world.now)
    assert estimate.verdict == "wait"
    assert estimate.pending is not None
    job, _ = job_ask(actor=world.user, data=asked, now=world.now)
    assert job.pending == estimate.pending
    world.cycle(after_s=0)
    job.refresh_from_db()
    for name in ("code", "expected_start_p50", "position", "evidence"):
        assert job.pending[name] == estimate.pending[name]


def test_the_quota_shown_is_of_the_flavor_that_the_reason_names(world: World) -> None:
    # Any flavor will do; of the first one in the fleet the tenant may have all, of l4 one device.
    first = "a-first-flavor"
    factories.device(world.node, index=5, flavor=first, uid="n-gpu-5")
    factories.quota(world.tenant, world.cluster, "nvidia-l4", 1000, borrowing_limit=0)
    world.submit(devices=1, flavors=["nvidia-l4"])
    world.cycle()
    _, estimate = job_dry_run(
        actor=world.user, data=data(devices=1, flavors=["nvidia-l4", first]), now=world.now
    )
    assert estimate.verdict == "now"
    _, estimate = job_dry_run(
        actor=world.user, data=data(devices=2, flavors=[first, "nvidia-l4"]), now=world.now
    )
    assert estimate.pending is not None
    assert estimate.pending["evidence"]["flavor"] == "nvidia-l4"
    assert [line.flavor for line in estimate.quota if line.flavor != "cpu"] == ["nvidia-l4"]


def test_compute_units_and_hours_of_an_estimate_are_those_of_the_devices(world: World) -> None:
    _, estimate = job_dry_run(
        actor=world.user, data=data(devices=2, time_limit_s=1800), now=world.now
    )
    assert estimate.compute_units == pytest.approx(242.0)
    assert estimate.cu_hours == pytest.approx(121.0)


def test_a_state_that_contradicts_itself_refuses_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise InvalidSnapshotError("device 1 occurs twice")

    monkeypatch.setattr(cycle, "estimate", refuse)
    job, _ = job_ask(actor=world.user, data=data(), now=world.now)
    assert job.pending["code"] == "pending_evaluation"


@pytest.mark.parametrize("key", ["", "k" * 201, "a\nb", "\x00"])
def test_a_key_that_is_no_key_is_refused(world: World, key: str) -> None:
    with pytest.raises(InvalidValueError, match="Idempotency-Key"):
        job_ask(actor=world.user, data=data(), now=world.now, idempotency_key=key)


def test_the_same_key_of_two_people_is_two_keys(world: World) -> None:
    other = factories.member(world.tenant)
    for person in (world.user, other):
        _, new = job_ask(actor=person, data=data(), now=world.now, idempotency_key="k")
        assert new
    assert Job.objects.count() == 2


def test_a_lost_race_for_a_key_answers_the_first_ones_job(world: World) -> None:
    request = job_request_validate(data=data(), actor=world.user)
    asked: dict[str, Any] = {"actor": world.user, "request": request, "now": world.now}
    first, new = job_submit(**asked, pending={}, idempotency_key="k")
    second, again = job_submit(**asked, pending={}, idempotency_key="k")
    assert (first.pk, new, again) == (second.pk, True, False)
    assert JobEvent.objects.count() == 1


def test_a_refusal_of_the_database_is_not_taken_for_a_repeated_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = job_request_validate(data=data(), actor=world.user)
    monkeypatch.setattr("scheduler.services.jobs._columns", lambda _: {"name": "x"})
    with pytest.raises(IntegrityError):
        job_submit(
            actor=world.user, request=request, now=world.now, pending={}, idempotency_key="k"
        )


def test_nobody_submits_to_a_tenant_of_others(world: World) -> None:
    request = job_request_validate(data=data(), actor=world.user)
    stranger = factories.member(factories.tenant())
    with pytest.raises(NotAllowedError):
        job_submit(actor=stranger, request=request, now=world.now, pending={})


def test_a_job_asked_for_again_asks_for_the_same(world: World) -> None:
    first = world.submit(
        devices=1, gpu_milli=500, gpu_memory_mib=1000, env={"A": "1"}, flavors=["nvidia-l4"]
    )
    again, _ = job_ask(actor=world.user, data=job_as_data(first), now=world.now, resubmit_of=first)
    assert again.resubmit_of == first
    assert job_as_data(again) == job_as_data(first)


def test_an_empty_fleet_says_so_and_a_node_that_is_away_only_waits(world: World) -> None:
    Node.objects.update(state="unknown", seen_at=world.now - timedelta(hours=1))
    _, estimate = job_dry_run(actor=world.user, data=data(devices=1), now=world.now)
    assert estimate.verdict == "wait"
