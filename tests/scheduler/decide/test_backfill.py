"""The time profile: its tables, however large."""

import numpy as np
import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.decide import backfill
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, world


def decided() -> Plan:
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=2)
    held = running(job("held", devices=2, limit_s=600.0), 0, [0, 1])
    queue = [job("large", devices=2, replicas=2), job("short", devices=2, limit_s=600.0)]
    snapshot = world(fleet, [*queue, job("long", devices=2, limit_s=601.0)], running=[held])
    policy = Policy()
    return decide(snapshot, policy, now_s=NOW_S, budget_s=1.0, clock=lambda: 0.0)


def test_plain_pages_hold_what_huge_ones_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = decided()
    assert [start.uid for start in usual.starts] == ["short"]
    monkeypatch.setattr(backfill, "HUGE_BYTES", 1)
    assert decided() == usual


def test_zeros_are_zeros_to_be_written_to_whatever_their_number() -> None:
    for shape in ((3, 2), (192, 5000, 8), (192, 5000, 0)):
        zeros = backfill._zeros(shape)
        assert zeros.shape == shape
        assert zeros.dtype == np.int64
        assert not zeros.any()
        zeros += 1
        assert zeros.all()
