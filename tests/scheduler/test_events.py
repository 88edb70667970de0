"""News leaves when a transaction commits, and a burst of it wakes the cycle once."""

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from celery import current_app
from channels.layers import get_channel_layer
from django.core.cache import cache
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from scheduler import events
from scheduler.execute.base import Phase
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


class Broker:
    """Notes what is sent to the workers."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, tuple[Any, ...], float]] = []
        self.down = False

    def send_task(self, name: str, args: tuple[Any, ...], *, expires: float) -> None:
        if self.down:
            raise ConnectionError("no broker")
        self.sent.append((name, args, expires))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    fake = Broker()
    monkeypatch.setattr(current_app, "send_task", fake.send_task)
    cache.delete(events.wake_key("c"))
    yield fake
    cache.delete(events.wake_key("c"))


@pytest.fixture
def nudged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    slugs: list[str] = []
    monkeypatch.setattr(events, "nudge", slugs.append)
    return slugs


def test_a_burst_of_changes_wakes_one_cycle(
    broker: Broker,
    nudged: list[str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(5):
            events.changed(cluster_slug="c")
    assert broker.sent == [("scheduler.tasks.run_cycle", ("c",), events.WAKE_KEEP_S)]
    assert nudged == ["c"] * 5


def test_nothing_is_told_before_the_commit_or_after_a_rollback(
    broker: Broker,
    nudged: list[str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        with transaction.atomic():
            events.changed(cluster_slug="c")
            transaction.set_rollback(True)
        assert (broker.sent, nudged) == ([], [])
    assert (broker.sent, nudged) == ([], [])


def test_what_only_browsers_need_wakes_nobody(
    broker: Broker,
    nudged: list[str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        events.seen(cluster_slug="c")
    assert (broker.sent, nudged) == ([], ["c"])


def test_a_wake_up_that_could_not_be_sent_does_not_silence_the_next_one(broker: Broker) -> None:
    broker.down = True
    with pytest.raises(ConnectionError):
        events.wake("c")
    broker.down = False
    events.wake("c")
    assert len(broker.sent) == 1


@pytest.mark.django_db(transaction=True)
def test_a_held_burst_is_told_once_for_each_cluster_at_its_end(
    broker: Broker, nudged: list[str]
) -> None:
    with events.burst():
        for _ in range(3):
            events.changed(cluster_slug="c")
            events.seen(cluster_slug="c")
            events.seen(cluster_slug="other")
        assert (broker.sent, nudged) == ([], [])
    assert len(broker.sent) == 1
    assert nudged == ["c", "other"]


@pytest.mark.django_db(transaction=True)
def test_a_cycle_does_not_wake_itself_for_what_it_has_seen_and_decided(
    broker: Broker, nudged: list[str]
) -> None:
    world = World()
    first = world.submit(devices=2)
    assert len(broker.sent) == 1
    world.cycle()
    world.says(first, Phase.SUCCEEDED, exit_code=0)
    second = world.submit(devices=2)
    broker.sent.clear()
    nudged.clear()
    world.cycle()
    assert world.state(second) == "starting"
    assert (broker.sent, nudged) == ([], ["c"])


def test_what_happens_after_the_freeze_wakes_the_next_cycle(
    broker: Broker, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    world = World()
    world.submit()
    with django_capture_on_commit_callbacks(execute=True):
        world.cycle()
        assert cache.get(events.wake_key("c")) is None
        events.changed(cluster_slug="c")
    assert len(broker.sent) == 1


def test_browsers_in_the_group_of_the_cluster_hear_of_it() -> None:
    layer = get_channel_layer()
    assert layer is not None

    async def listen() -> dict[str, Any]:
        channel = await layer.new_channel()
        await layer.group_add(events.fleet_group("c"), channel)
        await sync_to_async(events.nudge)("c")
        heard: dict[str, Any] = await layer.receive(channel)
        await layer.flush()
        return heard

    assert async_to_sync(listen)() == {"type": "fleet.changed"}
