"""The worked example of docs/guides/scheduling.md, so that the page stays true."""

from dataclasses import replace

import pytest

from scheduler.core.plan import EvictionCause, FairShareRow, Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RULES = Policy(strategy="rules")
TENANTS = (
    tenant("lab"),
    tenant("speech", under="lab", a100=4, cpu=64),
    tenant("vision", under="lab", a100=4, cpu=64),
)
V_TRAIN = running(
    job("v-train", tenant="vision", devices=4, cpu=16, limit_s=7200, submitted_s=NOW_S - 3600),
    0,
    range(4),
    started_s=NOW_S - 1800,
)
V_SWEEP = replace(
    running(
        job("v-sweep", tenant="vision", devices=2, cpu=8, limit_s=7200, submitted_s=NOW_S - 3600),
        1,
        [4, 5],
        started_s=NOW_S - 1800,
    ),
    checkpointed_s=NOW_S - 300,
)
S_TRAIN = job("s-train", tenant="speech", devices=4, cpu=16, limit_s=3600, submitted_s=NOW_S - 300)
V_EVAL = job("v-eval", tenant="vision", devices=1, cpu=4, limit_s=1200, submitted_s=NOW_S - 7200)


def fleet() -> FleetBuilder:
    return FleetBuilder().node("n1", devices=4).node("n2", devices=4)


def noon() -> Snapshot:
    return world(fleet(), [S_TRAIN, V_EVAL], running=[V_TRAIN, V_SWEEP], tenants=TENANTS)


def forty_seconds_later() -> Snapshot:
    """`v-sweep` has ended and waits again; `s-train` holds a promise since noon."""
    pending = [replace(S_TRAIN, promised_s=NOW_S), V_EVAL, replace(V_SWEEP.spec, preempted_count=1)]
    return world(fleet(), pending, running=[V_TRAIN], tenants=TENANTS, now_s=NOW_S + 40)


def plan_of(snapshot: Snapshot) -> Plan:
    return decide(snapshot, RULES, now_s=snapshot.now_s, budget_s=1.0)


def test_speech_takes_its_quota_back_from_the_job_that_borrowed_it() -> None:
    plan = plan_of(noon())
    assert plan.starts == ()
    (evicted,) = plan.preempts
    assert (evicted.uid, evicted.beneficiary) == ("v-sweep", "s-train")
    assert evicted.cause is EvictionCause.RECLAIMED
    assert evicted.evidence["work_lost_s"] == 600.0  # 2 devices x 300 s since the checkpoint
    assert evicted.evidence["above_guarantee_milli"] == 2000  # 6 devices held, 4 owned


def test_each_waiting_job_is_told_why_and_when() -> None:
    s_train, v_eval = plan_of(noon()).pending
    assert s_train.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS
    assert s_train.expected_start_p50_s == NOW_S + 30
    assert (s_train.evidence["available_milli"], s_train.evidence["missing_milli"]) == (2000, 2000)
    assert [(r.code, r.params["starts_now"]) for r in s_train.remedies] == [
        ("fewer_devices", True),
        ("later", False),
    ]
    assert s_train.remedies[0].params["devices"] == 2
    assert v_eval.code is WaitReason.RESERVED
    assert v_eval.expected_start_p50_s == NOW_S + 30 + 3600


def test_the_parts_of_the_order_are_those_of_the_page() -> None:
    s_train, v_eval = plan_of(noon()).pending
    assert s_train.priority_parts == pytest.approx(
        {"priority_class": 0, "age": 300 * 300 / 604800, "size": 25, "qos": 0, "fair_share": 500}
    )
    assert v_eval.priority_parts == pytest.approx(
        {
            "priority_class": 0,
            "age": 300 * 7200 / 604800,
            "size": 6.25,
            "qos": 0,
            "fair_share": 500 * 2 ** -(6 / 4 / 2),
        }
    )


def test_the_shares_are_those_of_the_page() -> None:
    shares = [row for row in plan_of(noon()).fair_shares if row.flavor == "a100"]
    assert shares == [
        FairShareRow("speech", "a100", 4000, 4000, 0, 4000, part=4000),
        FairShareRow("vision", "a100", 4000, 4000, 6000, 7000, part=4000),
    ]


def test_the_next_cycle_keeps_the_promise_before_anybody_else() -> None:
    plan = plan_of(forty_seconds_later())
    (start,) = plan.starts
    assert (start.uid, start.replicas[0].node, start.replicas[0].devices) == (
        "s-train",
        1,
        (4, 5, 6, 7),
    )
    assert [(p.uid, p.code) for p in plan.pending] == [
        ("v-sweep", WaitReason.WAITING_FOR_QUOTA),
        ("v-eval", WaitReason.WAITING_FOR_QUOTA),
    ]
    assert plan.preempts == ()
