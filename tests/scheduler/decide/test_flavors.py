"""Which flavor a job gets: by measured throughput, compute units and MIG profile; never hot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.errors import InvalidPlanError, InvalidSnapshotError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RULES = Policy(strategy="rules")


def plan_of(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status != "error", plan.solver.note
    verify(snapshot, plan)
    return plan


def measured(
    jobs: Sequence[JobSpec], throughputs: Mapping[tuple[str, str], float] | None = None
) -> Snapshot:
    """K80 of 6 CU, P100 of 19, V100 of 125; the class lm is measured on the first two."""
    fleet = FleetBuilder().flavor("k80", cu=6.0).flavor("p100", cu=19.0).flavor("v100", cu=125.0)
    for name in ("k80", "p100", "v100"):
        fleet.node(name, devices=1, flavor=name)
    known = {("lm", "k80"): 0.3, ("lm", "p100"): 1.0} if throughputs is None else throughputs
    return replace(world(fleet, jobs), throughputs=known)


def flavor_of(snapshot: Snapshot) -> str:
    (start,) = plan_of(snapshot).starts
    return start.flavor


def test_a_measured_class_gets_its_fastest_flavor_and_others_the_smallest() -> None:
    """lm: p100 1.0 and v100, not measured, 125/125: equal, so the smaller one."""
    lm = replace(job("a", devices=1), job_class="lm")
    assert flavor_of(measured([lm])) == "p100"
    assert flavor_of(measured([job("a", devices=1)])) == "k80"


def test_the_kind_is_the_class_of_a_job_that_names_none() -> None:
    table = {("batch", "v100"): 1.0, ("batch", "p100"): 0.5, ("batch", "k80"): 0.1}
    assert flavor_of(measured([job("a", devices=1)], table)) == "v100"


def test_a_job_of_any_flavor_takes_what_its_tenant_owns_and_leaves_others_theirs() -> None:
    """k80 is the smallest, but u's; t owns a v100. Named in that order, k80 is borrowed."""
    lines = {"k80": 0, "p100": 0, "v100": 1}
    tree = [tenant("root", k80=0, p100=0, v100=0), tenant("t", under="root", **lines)]
    tree += [tenant("u", under="root", k80=1, p100=1, v100=0)]
    anywhere = replace(measured([job("a", devices=1)]), tenants=tuple(tree))
    assert flavor_of(anywhere) == "v100"
    named = replace(anywhere, pending=(job("a", devices=1, flavors=["k80", "v100"]),))
    assert flavor_of(named) == "k80"


@pytest.mark.parametrize(("speed", "chosen"), [(0.6, "large"), (0.4, "small")])
def test_an_elastic_job_goes_where_its_replicas_together_are_fastest(
    speed: float, chosen: str
) -> None:
    """Two replicas at 1.0 on small are worth 2.0; four on large 2.4, or 1.6."""
    fleet = FleetBuilder().flavor("small", cu=300.0).flavor("large", cu=900.0)
    fleet.node("n1", devices=2, flavor="small").node("n2", devices=4, flavor="large")
    elastic = job("a", devices=1, replicas=1, replicas_max=4, flavors=["small", "large"])
    known = {("lm", "small"): 1.0, ("lm", "large"): speed}
    snapshot = world(fleet, [replace(elastic, job_class="lm")])
    assert flavor_of(replace(snapshot, throughputs=known)) == chosen


def test_a_named_flavor_is_kept_whatever_was_measured() -> None:
    named = replace(job("a", devices=1, flavors=["k80"]), job_class="lm")
    assert flavor_of(measured([named])) == "k80"


def test_least_throughput_is_of_what_was_measured() -> None:
    """0.1 of a V100's CU would rule the K80 out (6/125 = 0.048); measured it has 0.3."""
    asked = job("a", devices=1, flavors=["k80"], min_throughput=0.1)
    assert plan_of(measured([asked])).pending[0].code == "no_matching_flavor"
    assert flavor_of(measured([replace(asked, job_class="lm")])) == "k80"


def test_performance_is_the_measured_throughput_against_the_best_allowed() -> None:
    lm = replace(job("a", devices=1, flavors=["k80", "p100"]), job_class="lm")
    plain = job("b", devices=1, flavors=["k80", "p100"])
    objective = Objective(Turns(measured([lm, plain]), RULES, now_s=NOW_S))
    assert objective.speed(lm, 0) == pytest.approx(0.3)
    assert objective.speed(plain, 0) == pytest.approx(6 / 19)


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, float("nan"), float("inf")])
def test_a_throughput_outside_0_to_1_is_refused(value: float) -> None:
    with pytest.raises(InvalidSnapshotError):
        plan_of(measured([], {("c", "k80"): value}))


def slices() -> FleetBuilder:
    """Slices of two models of one profile, and a larger one."""
    fleet = FleetBuilder()
    for name, memory, cu in [
        ("a100-mig-1g.10gb", 10_000, 44.0),
        ("a100-mig-3g.40gb", 40_000, 132.0),
        ("h100-mig-1g.10gb", 10_000, 140.0),
    ]:
        fleet.flavor(name, cu=cu, memory_mib=memory).node(name, devices=1, flavor=name)
    return fleet


def test_a_profile_asks_for_that_slice_of_any_model() -> None:
    jobs = [job(uid, devices=1, flavors=["1g.10gb"]) for uid in ("a", "b", "c")]
    plan = plan_of(world(slices(), jobs))
    assert sorted(s.flavor for s in plan.starts) == ["a100-mig-1g.10gb", "h100-mig-1g.10gb"]
    assert plan.pending[0].code == "waiting_for_capacity"


def test_any_slice_with_enough_memory_is_asked_for_by_memory_alone() -> None:
    assert flavor_of(world(slices(), [job("a", devices=1, gpu_memory_mib=20_000)])) == (
        "a100-mig-3g.40gb"
    )


def sliced(*jobs: JobSpec) -> Snapshot:
    """Seven free slices of 40 CU, the smallest flavor, and four whole a100."""
    fleet = FleetBuilder().flavor(SLICE, cu=40.0, memory_mib=10_000).flavor("a100", cu=312.0)
    fleet.node("n1", devices=7, flavor=SLICE).node("n2", devices=4)
    return world(fleet, jobs)


SLICE = "a100-mig-1g.10gb"


def test_a_replica_of_several_devices_gets_whole_ones_and_one_of_a_device_a_slice() -> None:
    assert flavor_of(sliced(job("a", devices=4))) == "a100"
    assert flavor_of(sliced(job("a", devices=1))) == SLICE
    assert flavor_of(sliced(job("a", devices=1, replicas=2))) == SLICE  # a process each


@pytest.mark.parametrize("asked", [SLICE, "1g.10gb"])
def test_several_slices_are_had_by_name_or_profile(asked: str) -> None:
    assert flavor_of(sliced(job("a", devices=4, flavors=[asked]))) == SLICE


def test_a_plan_that_gives_several_slices_unasked_is_refused() -> None:
    named = sliced(job("a", devices=4, flavors=[SLICE]))
    plan = plan_of(named)
    with pytest.raises(InvalidPlanError, match="may not use flavor"):
        verify(replace(named, pending=(job("a", devices=4),)), plan)


def test_a_cluster_of_slices_has_no_flavor_for_several_devices() -> None:
    """One device would start; no other flavor is advised to a job that named a100."""
    fleet = FleetBuilder().flavor(SLICE, memory_mib=10_000).node("n1", devices=7, flavor=SLICE)
    (waits,) = plan_of(world(fleet, [job("a", devices=2)])).pending
    assert (waits.code, waits.evidence["present"]) == ("no_matching_flavor", [SLICE])
    assert [remedy.code for remedy in waits.remedies] == ["fewer_devices"]
    (waits,) = plan_of(world(fleet, [job("a", devices=2, flavors=["a100"])])).pending
    assert [remedy.code for remedy in waits.remedies] == []


def test_a_job_that_runs_on_slices_grows_onto_slices() -> None:
    """It holds two of seven, and grows by two more replicas of two, though it names none now."""
    spec = job("a", devices=2, replicas=1, replicas_max=3, limit_s=86_400)
    places = (ReplicaPlacement(0, (0, 1), 1000, 10_000),)
    held = RunningJob(spec, places, NOW_S - 700, checkpointed_s=NOW_S)
    fleet = FleetBuilder().flavor(SLICE, memory_mib=10_000).node("n1", devices=7, flavor=SLICE)
    (resize,) = plan_of(world(fleet, running=[held])).resizes
    assert len(resize.replicas) == 3


def test_a_throttled_device_takes_nothing_new_and_the_reason_says_so() -> None:
    snapshot = world(FleetBuilder().node("n", devices=2), [job("a", devices=1)])
    hot = replace(snapshot.fleet, device_throttled=np.array([True, False]))
    (start,) = plan_of(replace(snapshot, fleet=hot)).starts
    assert start.replicas[0].devices == (1,)
    both = world(FleetBuilder().node("n", devices=2), [job("a", devices=2)])
    (answer,) = plan_of(replace(both, fleet=hot)).pending
    assert answer.code == "nodes_unavailable"
    assert answer.evidence["throttled_devices"] == 1


def of_two_flavors(spec: JobSpec) -> Pending:
    """Two a100 and two h100, all held by y since 9000 s; x owns two h100, y two a100."""
    fleet = FleetBuilder().node("a", devices=2).node("h", devices=2, flavor="h100")
    tree = [
        tenant("o", a100=0, h100=0),
        tenant("x", under="o", a100=0, h100=2),
        tenant("y", under="o", a100=2, h100=0),
    ]
    busy = [
        running(
            job(uid, tenant="y", devices=2, limit_s=90_000),
            node,
            devices,
            started_s=NOW_S - 9000,
        )
        for uid, node, devices in (("r1", 0, [0, 1]), ("r2", 1, [2, 3]))
    ]
    snapshot = world(fleet, [spec], running=busy, tenants=tree)
    (waits,) = decide(snapshot, RULES, now_s=NOW_S, budget_s=1.0).pending
    return waits


def test_a_job_of_any_flavor_is_told_of_the_one_that_its_tenant_owns() -> None:
    """It may not ask yet; of h100 its tenant owns two, all lent to y; of a100 it owns nothing."""
    waits = of_two_flavors(job("q", tenant="x", devices=2))
    assert waits.code == "waiting_for_quota"
    assert (waits.evidence["flavor"], waits.evidence["nominal_milli"]) == ("h100", 2000)


def test_a_job_that_room_is_made_for_is_told_of_the_flavor_of_that_room() -> None:
    """It names a100 first, and misses two of either; only what its tenant owns can be reclaimed."""
    spec = job("q", tenant="x", devices=2, flavors=["a100", "h100"], submitted_s=NOW_S - 9000)
    waits = of_two_flavors(spec)
    assert waits.code == "waiting_for_preempted_jobs"
    assert (waits.evidence["flavor"], waits.evidence["missing_milli"]) == ("h100", 2000)
