import pytest

from scheduler.core.plan import Plan, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending, Remedy, WaitReason
from scheduler.core.snapshot import Snapshot
from scheduler.decide import cycle
from scheduler.decide.advice import MOST_TRIALS, Trials, kept
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, with_pending, world

OPTIMISING = Policy(strategy="optimising")


def half_full() -> Snapshot:
    """Two of four devices are free; j1 asks for four, the others for one each."""
    fleet = FleetBuilder().node("a", devices=4)
    held = running(job("R", devices=2, limit_s=90000), 0, [0, 1])
    jobs = [
        job("j1", devices=4, submitted_s=NOW_S - 40000),
        job("j2", devices=1),
        job("j3", devices=1),
    ]
    return world(fleet, jobs, running=[held], tenants=[tenant("t", a100=99)])


def codes(snapshot: Snapshot, policy: Policy) -> dict[str, object]:
    plan = cycle.decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    waits = next(pending for pending in plan.pending if pending.uid == "j1")
    return {one.code: one.params["starts_now"] for one in waits.remedies}


def test_a_program_that_would_serve_others_makes_no_promise() -> None:
    """With two devices j1, the oldest, starts under the rules; two jobs are worth more than one."""
    snapshot = half_full()
    assert codes(snapshot, Policy(strategy="rules"))["fewer_devices"] is True
    assert "fewer_devices" not in codes(snapshot, OPTIMISING)
    smaller = [job("j1", devices=2, submitted_s=NOW_S - 40000), *snapshot.pending[1:]]
    tried = cycle.decide(with_pending(snapshot, smaller), OPTIMISING, now_s=NOW_S, budget_s=5.0)
    assert sorted(start.uid for start in tried.starts) == ["j2", "j3"]


def test_a_program_that_would_start_the_job_promises_it() -> None:
    alone = with_pending(half_full(), half_full().pending[:1])
    assert codes(alone, OPTIMISING)["fewer_devices"] is True


def test_an_estimate_promises_only_what_the_program_would_do() -> None:
    """Alone it starts with two devices, beside two jobs it does not; untried is no promise."""
    snapshot = half_full()
    asked, *others = snapshot.pending
    said = {}
    for name, jobs, budget_s in (("alone", [], 5.0), ("beside", others, 5.0), ("untried", [], 0.0)):
        queue = with_pending(snapshot, jobs)
        answer = cycle.estimate(queue, OPTIMISING, asked, now_s=NOW_S, budget_s=budget_s)
        assert isinstance(answer, Pending)
        said[name] = {one.code: one.params["starts_now"] for one in answer.remedies}
    assert said["alone"]["fewer_devices"] is True
    assert "fewer_devices" not in said["beside"]
    assert said["untried"]["fewer_devices"] is False


# -- trials -------------------------------------------------------------------------------------


def answering(
    status: str, uid: str, *, each_s: float = 0.25, times: list[float] | None = None
) -> Trials:
    """Return trials in which a job starts; 2 s are left for them."""
    spent = times if times is not None else []

    def decides(world: Snapshot, left_s: float) -> Plan:
        spent.append(left_s)
        return Plan(
            world.cluster, NOW_S, (Start(uid, (), ""),), (), (), SolverReport("s", "s", status)
        )

    return Trials(decides, left_s=2.0, each_s=each_s, spent_s=lambda: each_s * len(spent))


def told(count: int = 1) -> list[Pending]:
    """Return so many answers with a promise."""
    helps = (Remedy("fewer_devices", {"devices": 2, "starts_now": True}),)
    return [Pending("j1", WaitReason.WAITING_FOR_CAPACITY, {}, helps)] * count


@pytest.mark.parametrize("status", ["feasible", "timeout", "error", "late", "invalid"])
def test_what_came_out_by_chance_is_neither_promised_nor_left_out(status: str) -> None:
    (answer,) = kept(half_full(), told(), answering(status, "j1"))
    assert [one.params["starts_now"] for one in answer.remedies] == [False]


def test_half_of_the_time_left_is_spent_on_trials() -> None:
    """Half of 2 s is 1 s, room for four trials of 0.25 s: each has what is left of that."""
    times: list[float] = []
    answers = kept(half_full(), told(6), answering("optimal", "j1", times=times))
    assert times == [1.0, 0.75, 0.5, 0.25]
    promises = [answer.remedies[0].params["starts_now"] for answer in answers]
    assert promises == [True] * 4 + [False] * 2


def test_so_many_trials_are_made_where_time_is_not_measured() -> None:
    answers = kept(half_full(), told(MOST_TRIALS + 5), answering("optimal", "j1", each_s=0.0))
    promises = [answer.remedies[0].params["starts_now"] for answer in answers]
    assert promises == [True] * MOST_TRIALS + [False] * 5


def two_flavors_short_of_quota(power_cap_w: float | None = None) -> Pending:
    """Return the answer to a job of 4 devices, of the tree's 4 a100 and 4 h100.

    t owns 1 and 3 of them, b holds its 3 and 1: t misses 3 a100 or 1 h100. Of each 8 are there.
    """
    fleet = FleetBuilder().flavor("h100", power_w=700.0)
    fleet = fleet.node("a", devices=8).node("h", devices=8, flavor="h100")
    runs = [
        running(job("ra", tenant="b", devices=3), 0, (0, 1, 2)),
        running(job("rh", tenant="b", devices=1), 1, (8,)),
    ]
    tree = [
        tenant("all"),
        tenant("t", under="all", a100=1, h100=3),
        tenant("b", under="all", a100=3, h100=1),
    ]
    snapshot = world(fleet, [job("j", tenant="t", devices=4)], running=runs, tenants=tree)
    policy = Policy(strategy="rules", power_cap_w=power_cap_w)
    (pending,) = cycle.decide(snapshot, policy, now_s=NOW_S, budget_s=1.0).pending
    assert pending.code == "waiting_for_quota"
    return pending


def test_the_quota_to_ask_for_is_that_of_the_flavor_of_which_least_is_missing() -> None:
    pending = two_flavors_short_of_quota()
    assert (pending.evidence["flavor"], pending.evidence["missing_milli"]) == ("h100", 1000)
    helps = {remedy.code: remedy.params for remedy in pending.remedies}
    assert helps["ask_for_quota"] == {"missing_milli": {"h100": 1000}, "starts_now": True}


def test_no_quota_is_asked_for_of_a_flavor_that_the_power_cap_would_keep_idle() -> None:
    """What runs draws 3 * 400 + 700 = 1900 W: 4 h100 more make 4700 W, 4 a100 more 3500 W."""
    helps = {
        remedy.code: remedy.params
        for remedy in two_flavors_short_of_quota(power_cap_w=3500.0).remedies
    }
    assert helps["ask_for_quota"] == {"missing_milli": {"a100": 3000}, "starts_now": True}


def test_no_flavor_is_advised_with_which_an_overdue_job_would_pass() -> None:
    """j is ahead of `old` only as both may use y: asking for x lets `old` take the last core."""
    fleet = FleetBuilder().flavor("w").node("x", devices=2, flavor="x")
    fleet.node("y", devices=1, flavor="y").node("z", devices=1, flavor="y")
    held = running(job("held", devices=1, flavors=("y",), tenant="o"), 2, (3,))
    ahead = job("j", devices=1, replicas=2, flavors=("y",), priority=1)
    old = job("old", devices=1, flavors=("y", "w"), submitted_s=NOW_S - 90_000)
    owners = [tenant("o", x=2, y=1, cpu=10), tenant("t", x=2, y=2, cpu=2)]
    snapshot = world(fleet, [ahead, old], running=[held], tenants=owners)
    (pending,) = cycle.decide(snapshot, Policy(), now_s=NOW_S, budget_s=5.0).pending
    assert pending.uid == "j"
    advised = {remedy.code for remedy in pending.remedies if remedy.params.get("starts_now")}
    assert "fewer_replicas" in advised
    assert "other_flavor" not in advised
