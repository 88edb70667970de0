"""Every code has a sentence in people's units."""

import re
from inspect import getsource

import pytest
from django.utils import timezone

from portal import reasons
from portal.reasons.clashes import LIMITS, WISHES
from scheduler.core.reasons import WaitReason
from scheduler.decide import clashes, remedies, turns
from scheduler.execute import base

SHAPE = {"replicas": 2, "cpu_milli": 1500, "memory_mib": 16384, "devices": 4, "gpu_milli": 1000}


def test_every_reason_of_the_engine_has_a_sentence() -> None:
    assert {str(code) for code in WaitReason} == set(reasons.WAITING)
    for code in WaitReason:
        text = reasons.sentence({"code": str(code), "evidence": {}})
        assert text.endswith(".")
        assert "%(" not in text


def test_every_remedy_of_the_engine_has_a_sentence() -> None:
    source = getsource(remedies) + getsource(turns)
    used = set(re.findall(r'(?:Remedy|_Amount)\(\s*"(\w+)"', source))
    assert len(used) >= 13
    assert used <= set(reasons.REMEDIES)


def test_every_reason_of_an_executor_has_a_sentence() -> None:
    doc = re.search(
        r"reason: short machine word: (.*?)\.", base.Observation.__doc__ or "", re.DOTALL
    )
    assert doc is not None
    words = set(re.findall(r"\w+", doc.group(1)))
    assert "memory_limit" in words
    assert words <= set(reasons.ENDINGS)


SIZE = {**SHAPE, "devices": 1, "gpu_milli": 500}
CLASHES: dict[str, tuple[tuple[str, ...], dict[str, object], str]] = {
    "what runs and a quota that was cut": (
        ("running", "quota"),
        {"tenant": "vision", "flavor": "cpu", "used_milli": 6000, "most_milli": 4500},
        "vision runs 6 cores; its quota with all it may borrow is 4.5 cores.",
    ),
    "what runs and a power cap that was cut": (
        ("running", "power_cap"),
        {"held_w": 700.0, "cap_w": 500.0},
        "What runs needs 700 W of board power; the cap is 500 W.",
    ),
    "one wish that nothing meets": (
        ("nodes",),
        {"nodes": SIZE},
        "This alone rules it out: 2 × (1.5 cores, 16 GiB, 0.5 of a device) on nodes of this size.",
    ),
    "several slices that were not asked for": (
        ("flavors",),
        {"flavors": {"asked": []}},
        "This alone rules it out: several devices a replica, none of them a MIG slice.",
    ),
    "speed that only a flavor has which the tenant may not use": (
        ("quota", "min_throughput"),
        {"quota": {"tenant": "vision"}, "min_throughput": {"asked": 0.9}},
        (
            "Each can be met alone, but not together: the quota of vision, "
            "at least 90 % of full speed."
        ),
    ),
}


@pytest.mark.parametrize(("names", "numbers", "text"), CLASHES.values(), ids=CLASHES.keys())
def test_what_clashes_is_said_in_numbers(
    names: tuple[str, ...], numbers: dict[str, object], text: str
) -> None:
    assert reasons.clash_sentence({"constraints": names, "numbers": numbers}) == text


def test_every_group_of_constraints_has_a_sentence() -> None:
    source = getsource(clashes)
    groups = set(re.findall(r'^        "(\w+)": lambda', source, re.MULTILINE))
    assert groups == set(WISHES)
    assert set(re.findall(r'Clash\(\("running", "(\w+)"\)', source)) == set(LIMITS)
    for names in ([name] for name in groups):
        assert "%(" not in reasons.clash_sentence({"constraints": names, "numbers": {}})


def test_an_unknown_code_still_gets_an_answer() -> None:
    assert reasons.sentence({"code": "new"}) == "It waits; the reason is not known."
    assert reasons.remedy_sentence({"code": "new"}) == "Ask an admin."
    assert reasons.end_sentence("new") == ""


def test_nothing_waits_where_nothing_is_stored() -> None:
    assert reasons.pending_view({}) is None
    assert reasons.pending_view(None) is None


CASES = {
    "never fits the memory of a device": (
        "never_fits",
        {
            "asked": {**SHAPE, "gpu_memory_mib": 81_920},
            "largest_node": {"gpu_memory_mib": 40_960},
        },
        "It asks for 80 GiB of device memory; the largest device has 40 GiB.",
    ),
    "what may not be evicted may not borrow": (
        "exceeds_max_quota",
        {"flavor": "cpu", "asked_milli": 8000, "most_milli": 4000, "may_borrow": False},
        (
            "It asks for 8 cores; the tenant owns 4 cores, and a job that may not be evicted "
            "may not borrow."
        ),
    ),
    "above the quota after a cut": (
        "waiting_for_quota",
        {"flavor": "cpu", "above_milli": 2000},
        (
            "The tenant holds 2 cores more than its quota allows since that was cut; it starts "
            "when jobs of the tenant end."
        ),
    ),
    "never fits a node": (
        "never_fits",
        {
            "asked": {**SHAPE, "replicas": 1},
            "largest_node": {"cpu_milli": 8000, "memory_mib": 32768, "devices": {"a100": 2}},
            "replicas_when_empty": 0,
        },
        (
            "No node is large enough, even empty: "
            "each replica asks for 1.5 cores, 16 GiB, 4 devices; "
            "the largest amounts on one node are 8 cores, 32 GiB, 2 × a100."
        ),
    ),
    "never fits together": (
        "never_fits",
        {"asked": SHAPE, "largest_node": {}, "replicas_when_empty": 1},
        "2 replicas can never run together: the whole cluster, empty, holds 1 of them.",
    ),
    "never fits one network card": (
        "never_fits",
        {
            "asked": {**SHAPE, "replicas": 1},
            "largest_node": {"cpu_milli": 8000, "memory_mib": 32768, "devices": {"a100": 8}},
            "replicas_when_empty": 0,
            "topology": "nic",
        },
        (
            "All replicas must be in one network card's reach: even empty, it has room for 0 of "
            "1, each of 1.5 cores, 16 GiB, 4 devices."
        ),
    ),
    "never fits one rack": (
        "never_fits",
        {"asked": SHAPE, "largest_node": {}, "replicas_when_empty": 1, "topology": "rack"},
        (
            "All replicas must be in one rack: even empty, it has room for 1 of 2, each of "
            "1.5 cores, 16 GiB, 4 devices."
        ),
    ),
    "more than all quota": (
        "exceeds_max_quota",
        {"flavor": "a100", "asked_milli": 4000, "most_milli": 2500, "named": True},
        "It asks for 4 × a100; with all that it may borrow, the tenant gets 2.5 × a100.",
    ),
    "more than the power cap": (
        "exceeds_power_cap",
        {"asked_w": 2800.0, "cap_w": 900.0},
        "It needs 2.8 kW of board power; the cluster's cap is 900 W.",
    ),
    "the power cap in the way": (
        "waiting_for_power",
        {"asked_w": 700.0, "held_w": 1400.0, "cap_w": 2000.0},
        (
            "The cluster's power cap is in the way: it needs 700 W, and 1.4 kW of 2.0 kW "
            "are allocated."
        ),
    ),
    "quota in use": (
        "waiting_for_quota",
        {
            "flavor": "cpu",
            "asked_milli": 1500,
            "available_milli": 500,
            "used_milli": 3500,
            "nominal_milli": 4000,
        },
        (
            "The tenant's quota of CPU cores is in use: it asks for 1.5, and 0.5 are left "
            "(3.5 used, 4 owned)."
        ),
    ),
    "quota lent to others": (
        "waiting_for_quota",
        {
            "flavor": "a100",
            "asked_milli": 3000,
            "available_milli": 0,
            "used_milli": 1000,
            "nominal_milli": 4000,
            "held_by_others_milli": 3000,
        },
        (
            "The tenant's quota of a100 is lent to others: it asks for 3, and 0 are left "
            "(1 used, 4 owned, 3 of that held by others)."
        ),
    ),
    "quota kept for jobs ahead": (
        "waiting_for_quota",
        {
            "flavor": "a100",
            "asked_milli": 1000,
            "available_milli": 0,
            "used_milli": 1000,
            "nominal_milli": 2000,
            "planned_milli": 1000,
        },
        (
            "The tenant's quota of a100 is kept for a job ahead of it: it asks for 1, and 0 are "
            "left until its end (1 used now, 2 owned)."
        ),
    ),
    "no quota of its own": (
        "waiting_for_quota",
        {
            "flavor": "a100",
            "asked_milli": 1000,
            "available_milli": 0,
            "used_milli": 0,
            "nominal_milli": 0,
        },
        ("The tenant owns no quota of a100: it asks for 1, and 0 are left to borrow (0 used)."),
    ),
    "nodes away": (
        "nodes_unavailable",
        {"unavailable_nodes": {"cordoned": 1, "unknown": 2}, "unhealthy_devices": 0},
        "It would fit, but not all may be used: 1 node cordoned, 2 nodes unreachable.",
    ),
    "nothing but slices": (
        "no_matching_flavor",
        {
            "asked": {"flavors": [], "min_throughput": 0.0, "devices": 4},
            "present": ["a100-mig-1g.10gb"],
        },
        (
            "A replica of several devices is not put on MIG slices, of which a process sees one, "
            "unless the job names them; there are: a100-mig-1g.10gb."
        ),
    ),
    "free devices too slow": (
        "waiting_for_capacity",
        {"asked": SHAPE, "free": {}, "min_throughput": 0.5, "replicas_anywhere": 4},
        (
            "Too little is free that is fast enough: it asks for at least 50 % of full speed; on "
            "any device there is room for 4 of its replicas."
        ),
    ),
    "no such flavor": (
        "no_matching_flavor",
        {"asked": {"flavors": ["h100"]}, "present": ["a100", "910b"]},
        "This cluster has no h100; it has: a100, 910b.",
    ),
    "in pieces of devices": (
        "fragmented",
        {
            "asked": {**SHAPE, "replicas": 1, "gpu_milli": 500, "devices": 1},
            "free": {
                "gpu_milli": 800,
                "devices": 0,
                "largest_block": 0,
                "largest_share_milli": 400,
            },
        },
        (
            "Enough is free in sum (0.8 devices), but not in one piece: "
            "the fullest node with room has 0.4 devices, "
            "and each replica asks for 1.5 cores, 16 GiB, 0.5 of a device."
        ),
    ),
    "full": (
        "waiting_for_capacity",
        {"asked": {**SHAPE, "gpu_milli": 500, "devices": 1}, "free": {"cpu_milli": 500}},
        (
            "Too little is free: it asks for 2 × (1.5 cores, 16 GiB, 0.5 of a device), "
            "and 0.5 cores, 0 MiB are free."
        ),
    ),
}


@pytest.mark.parametrize(("code", "evidence", "said"), CASES.values(), ids=CASES.keys())
def test_a_sentence_gives_the_numbers(code: str, evidence: dict[str, object], said: str) -> None:
    assert reasons.sentence({"code": code, "evidence": evidence}) == said


def test_a_remedy_says_whether_the_job_would_start_at_once() -> None:
    params = {"devices": 2, "starts_now": True}
    said = reasons.remedy_sentence({"code": "fewer_devices", "params": params})
    assert said == "Ask for 2 devices per replica, and it starts now."
    later = reasons.remedy_sentence(
        {"code": "ask_for_quota", "params": {"missing_milli": {"a100": 1500}}}
    )
    assert later == "Ask for 1.5 × a100 more quota."


@pytest.mark.parametrize(("zone", "said"), [("UTC", "14:20 UTC"), ("Asia/Shanghai", "22:20 CST")])
def test_a_planned_start_is_said_with_its_zone(zone: str, said: str) -> None:
    remedy = {"code": "later", "params": {"start_s": 1796307653.9, "starts_now": False}}
    with timezone.override(zone):
        assert reasons.remedy_sentence(remedy) == (
            f"Leave it as it is: planned to start by 2026-12-03 {said}."
        )


def test_a_start_that_no_calendar_has_is_still_said() -> None:
    """Of jobs of the longest limit, 68 years, 120 in a row end after the year 9999."""
    remedy = {"code": "later", "params": {"start_s": 1e15, "starts_now": False}}
    assert reasons.remedy_sentence(remedy) == "Leave it as it is: planned for a distant future."


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        (0.31, "Ask for at least 31 % of full speed, and it starts now."),
        (0.005, "Ask for at least 0.5 % of full speed, and it starts now."),
        (0.0, "Ask for no least throughput, and it starts now."),
    ],
)
def test_a_lower_throughput_is_said_in_percent(speed: float, said: str) -> None:
    params = {"min_throughput": speed, "starts_now": True}
    assert reasons.remedy_sentence({"code": "lower_min_throughput", "params": params}) == said


FAULTS = {
    "too many devices": (
        {"asked": SHAPE, "largest_node": {"cpu_milli": 8000, "memory_mib": 99999, "devices": {}}},
        ("devices",),
    ),
    "too much of two": (
        {"asked": SHAPE, "largest_node": {"cpu_milli": 1000, "memory_mib": 1, "devices": {"a": 8}}},
        ("cpu_milli", "memory_mib"),
    ),
    "too many replicas": (
        {
            "asked": SHAPE,
            "largest_node": {"cpu_milli": 9e9, "memory_mib": 9e9, "devices": {"a": 8}},
        },
        ("replicas",),
    ),
}


@pytest.mark.parametrize(("evidence", "fields"), FAULTS.values(), ids=FAULTS.keys())
def test_a_refusal_names_the_fields_to_change(
    evidence: dict[str, object], fields: tuple[str, ...]
) -> None:
    assert reasons.fields_at_fault({"code": "never_fits", "evidence": evidence}) == fields
