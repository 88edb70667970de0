import json
from collections import defaultdict
from dataclasses import replace

import pytest

from benchmarks.fairness import month
from benchmarks.fairness.__main__ import main, measure, reclaim_delay_s
from benchmarks.fairness.filling import fair_shares
from benchmarks.fairness.law import Standings, room_by_law, violations
from benchmarks.fairness.meter import Clocks, Window, is_for_others, jain, merged
from scheduler.core.plan import EvictionCause, Plan, Preempt, SolverReport
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import JobSpec, QuotaLine, ReplicaPlacement, RunningJob, TenantNode
from scheduler.simulate.jobs import SimJob

FLAVOR = month.FLAVOR.name
NOW_S = month.BEGIN_S + month.DAY_S
LIMITS = PreemptionPolicy()


def test_one_seed_is_one_month_and_its_load_is_what_was_meant() -> None:
    """Steady work is .75 of the 120 devices that teams own, bursts add a fifth or so."""
    once, again = month.jobs(3, 10.0), month.jobs(3, 10.0)
    assert [job.spec for job in once] == [job.spec for job in again]
    assert [job.spec for job in month.jobs(4, 10.0)] != [job.spec for job in once]
    work = sum(job.work * job.spec.shape.devices for job in once)
    assert 0.6 < work / (10 * month.DAY_S * 128) < 1.0


def test_quotas_add_up_to_the_cluster() -> None:
    owned = sum(tenant.quotas[FLAVOR].nominal for tenant in month.tenants())
    assert owned == 1000 * month.NODES * month.DEVICES_PER_NODE == 128_000
    assert sum(tenant.slug.startswith("team") for tenant in month.tenants()) == 12


def tree(*lines: tuple[str, str | None, float, QuotaLine]) -> list[TenantNode]:
    return [TenantNode(slug, up, weight, {FLAVOR: line}) for slug, up, weight, line in lines]


ALL = ("all", None, 1.0, QuotaLine(4000))


def test_the_yardstick_gives_what_is_owned_and_pours_the_rest_by_weight() -> None:
    """12 devices: a owns 4, b 4, 4 are everybody's. a wants 20, b 2: 6 are left of b's and the
    pool's, all for a. With c beside them, weight 3, that wants 20: 1.5 and 4.5 of the 6.
    """
    two = tree(ALL, ("a", "all", 1.0, QuotaLine(4000)), ("b", "all", 1.0, QuotaLine(4000)))
    assert fair_shares(two, FLAVOR, 12, {"a": 20, "b": 2}) == {"a": 10, "b": 2}
    three = [*two, *tree(("c", "all", 3.0, QuotaLine(0)))]
    assert fair_shares(three, FLAVOR, 12, {"a": 20, "b": 2, "c": 20}) == {
        "a": 5.5,
        "b": 2,
        "c": 4.5,
    }


def test_the_yardstick_keeps_limits_of_borrowing_and_lending() -> None:
    """a may borrow 1. b lends 3 of its 4 and is idle: 1 is nobody's, so c gets 12 - 1 - 5 = 6."""
    limited = tree(
        ALL,
        ("a", "all", 1.0, QuotaLine(4000, borrowing_limit=1000)),
        ("b", "all", 1.0, QuotaLine(4000, lending_limit=3000)),
        ("c", "all", 1.0, QuotaLine(0)),
    )
    assert fair_shares(limited, FLAVOR, 12, {"a": 9, "c": 9}) == {"a": 5, "b": 0, "c": 6}


def test_jain_is_one_for_equal_and_one_in_n_for_one_that_has_all() -> None:
    fair = defaultdict(float, {"a": 10.0, "b": 20.0})
    long = defaultdict(float, {"a": 100.0, "b": 100.0})
    even = Window(held=defaultdict(float, {"a": 5.0, "b": 10.0}), fair=fair, contended_s=long)
    assert jain(even, 50) == (1.0, 30.0)
    one = Window(held=defaultdict(float, {"a": 5.0}), fair=fair, contended_s=long)
    assert jain(one, 50) == (0.5, 30.0)
    assert jain(even, 101) is None  # nobody contended for so long
    both = jain(merged([even, one]), 50)
    assert both is not None
    assert both[0] == pytest.approx((0.5 + 0.25) ** 2 / (2 * (0.25 + 0.0625)))


def test_a_clock_runs_until_its_tenant_is_served_or_no_longer_waits() -> None:
    clocks = Clocks()
    clocks.note({"a"}, set(), 0.0)
    clocks.note({"a"}, set(), 50.0)
    clocks.note({"a"}, {"a"}, 80.0)  # something of it started: the clock begins anew
    clocks.note({"a"}, set(), 100.0)
    clocks.note(set(), set(), 110.0)
    clocks.note(set(), set(), 999.0)
    assert clocks.longest_s == {"a": 80.0}


def work(uid: str, devices: int, at_s: float, team: str = "team-00") -> SimJob:
    """Return a job that runs for two hours."""
    at_s += month.BEGIN_S
    return SimJob(replace(spec(uid, team, devices), submitted_s=at_s), work=7200.0)


# -- the laws by hand ----------------------------------------------------------------------------

TENANTS = month.tenants()
"""team-d0 owns 16, team-d1 12 and keeps 6, team-d2 8, team-d3 4; a department 40 - 6 = 34."""


def spec(uid: str, team: str, devices: int, priority: int = 0) -> JobSpec:
    shape = ReplicaShape(8000 * devices, 65_536 * devices, devices)
    limit_s, since_s = 36_000.0, NOW_S - 3600
    return JobSpec(uid, team, "training", shape, 1, 1, (), priority, True, limit_s, since_s)


def held(job: JobSpec, node: int = 0, ran_s: float = 7200.0) -> RunningJob:
    place = ReplicaPlacement(node, tuple(range(job.shape.devices)), 1000, 81_920)
    return RunningJob(job, (place,), NOW_S - ran_s)


def found(job: JobSpec, *evicted: RunningJob, others: tuple[RunningJob, ...] = ()) -> list[str]:
    snapshot = replace(month.world(), now_s=NOW_S, pending=(job,), running=(*evicted, *others))
    preempts = tuple(Preempt(one.spec.uid, job.uid, EvictionCause.RECLAIMED) for one in evicted)
    report = SolverReport("rules", "rules", "not_needed")
    plan = Plan("month", NOW_S, (), (), (), report, preempts=preempts)
    return [text.split(": ")[1] for text in violations(snapshot, plan, LIMITS, {})]


def test_what_is_kept_from_the_department_is_not_in_its_sums() -> None:
    standings = Standings(TENANTS, {"team-01": 9})
    assert (standings.owned["dept-0"], standings.held["dept-0"]) == (34, 3)
    standings.add("team-01", -4)
    assert (standings.held["team-01"], standings.held["dept-0"]) == (5, 0)


def test_a_lawful_eviction_is_none_to_complain_of() -> None:
    """team-00 holds 20 of its 16 and team-03 claims 4 of its 4, in the same department."""
    base = held(spec("base", "team-00", 16), node=1)
    assert found(spec("mine", "team-03", 4), held(spec("v", "team-00", 4)), others=(base,)) == []


CASES = {
    "below what it owns": ("team-03", 4, held(spec("v", "team-00", 4)), "loses what it owns"),
    "more than one owns": ("team-03", 5, held(spec("v", "team-00", 4)), "claims what it"),
    "too young": ("team-03", 4, held(spec("v", "team-00", 4), ran_s=60), "ran too short"),
    "of a higher class": ("team-03", 4, held(spec("v", "team-00", 4, 1)), "of a higher priority"),
}


@pytest.mark.parametrize(("team", "devices", "victim", "law"), CASES.values(), ids=CASES.keys())
def test_an_unlawful_eviction_is_told(
    team: str, devices: int, victim: RunningJob, law: str
) -> None:
    assert any(text.startswith(law) for text in found(spec("mine", team, devices), victim))


def test_room_by_law_counts_whom_the_laws_let_go_and_no_one_else() -> None:
    """Node 0 is full. team-00 holds 20 of its 16: one job of 4 may go, not two."""
    running = [held(spec(f"v{i}", "team-00", 4), node=0) for i in range(2)]
    running.append(held(spec("base", "team-00", 12), node=1))
    free = [0] * month.NODES
    standings = Standings(TENANTS, {"team-00": 20})
    assert room_by_law(standings, spec("mine", "team-03", 4), running, free, LIMITS)
    assert not room_by_law(standings, spec("mine", "team-02", 8), running, free, LIMITS)
    assert standings.held["team-00"] == 20  # as it was


def test_the_last_line_is_one_object_with_the_agreed_keys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--days", "0.15", "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    keys = {"jain", "longest_starvation_s", "idle_while_waiting_device_s", "law_violations"}
    assert result.keys() >= {*keys, "reclaim_delay_s", "baselines"}
    assert result["baselines"].keys() == {"fifo", "priority_only"}
    for figures in (result, *result["baselines"].values()):
        assert figures.keys() >= keys
        assert figures["free_while_waiting_device_s"] >= 0
    assert result["idle_while_waiting_device_s"] == 0
    assert result["free_while_waiting_device_s"] == result["idle_kept_for_others_device_s"]
    assert result["law_violations"] == 0


def test_what_a_blocked_head_leaves_free_is_told_as_one_sum_of_who_gives_no_reasons() -> None:
    """16 nodes of 8: three are full, team-00 holds 7 of each other; its next job wants 8.

    Nothing ends within the hour, so 13 devices stay free under plain FIFO, of which the job of one
    device behind the head could use 1, from its third minute on.
    """
    full = [work(f"v{k}", 8, 0.0, team=f"team-{k}1") for k in range(3)]
    full += [work(f"v{k}", 7, 0.0) for k in range(3, month.NODES)]
    found = measure([*full, work("w-head", 8, 60.0), work("x-small", 1, 120.0)], "fifo", 1 / 24)
    assert found["free_while_waiting_device_s"] == 3600 - 120
    assert found["idle_while_waiting_device_s"] is None
    assert found["idle_kept_for_others_device_s"] is None


def test_a_month_without_a_job_is_a_mistake_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--days", "0.0001", "--json"])
    assert ended.value.code == 2
    assert "no job comes within 0.0001 days: give more --days" in capsys.readouterr().err


def test_what_was_lost_of_nothing_is_not_a_number() -> None:
    """The one job comes 6 s before the end, and the first cycle that sees it is the last."""
    found = measure([work("late", 1, 3600.0)], "fifo", 1 / 24)
    assert found["lost_pct"] is None


def test_the_reclaim_delay_is_the_limits_of_the_policy_and_two_cycles() -> None:
    """60 + 600 + 30 + 2 x 60."""
    assert reclaim_delay_s() == 810.0


def test_nodes_and_quota_that_are_planned_for_a_job_ahead_are_kept_for_others() -> None:
    def waits(code: WaitReason, **evidence: object) -> Pending:
        return Pending("j", code, evidence)

    assert is_for_others(waits(WaitReason.RESERVED))
    assert is_for_others(waits(WaitReason.WAITING_FOR_QUOTA, planned_milli=3000))
    assert not is_for_others(waits(WaitReason.WAITING_FOR_QUOTA, planned_milli=0))
    assert not is_for_others(waits(WaitReason.WAITING_FOR_QUOTA))
    assert not is_for_others(waits(WaitReason.FRAGMENTED))
