"""The program finds what trying everything finds."""

from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.plan import Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, QuotaLine, ReplicaPlacement, Snapshot, TenantNode
from scheduler.decide.cycle import decide
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, world

TENANTS = ("left", "right")
WATTS = {"fast": 700.0, "slow": 300.0}

TOLERANCE = 3 * 0.0025 + 0.001 * 6
"""Three weights of one times the tangents' error, and the gap at which the solver stops; the
program's own value is within 6 of zero, as log(0.01) is -4.6 and parts are at most about one."""


@st.composite
def small_worlds(draw: st.DrawFn) -> tuple[Snapshot, Policy]:
    """One node per flavor, whole devices and fixed gangs: nothing is lost by counting groups."""
    counts = {name: draw(st.integers(1, 4)) for name in WATTS}
    fleet = FleetBuilder()
    for name, cu in (("fast", 900.0), ("slow", 300.0)):
        fleet.flavor(name, cu=cu, power_w=WATTS[name])
        fleet.node(name, cpu=64, devices=counts[name], flavor=name)
    jobs = [
        job(
            f"j{i}",
            tenant=draw(st.sampled_from(TENANTS)),
            devices=draw(st.integers(1, 3)),
            flavors=draw(st.sampled_from([("fast",), ("slow",), ("fast", "slow"), ()])),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    quota = st.integers(0, 4).map(lambda n: QuotaLine(1000 * n, borrowing_limit=0))
    tenants = [
        TenantNode(slug, None, draw(st.sampled_from([1.0, 2.0])), {n: draw(quota) for n in WATTS})
        for slug in TENANTS
    ]
    cap_w = draw(st.none() | st.integers(0, 40).map(lambda n: 100.0 * n))
    return world(fleet, jobs, tenants=tenants), Policy(strategy="optimising", power_cap_w=cap_w)


def every_choice(snapshot: Snapshot) -> Iterator[dict[str, str]]:
    """Give uid -> flavor of all that could be chosen, legal or not."""
    uids = [one.uid for one in snapshot.pending]
    for flavors in product(("", *WATTS), repeat=len(uids)):
        yield {uid: name for uid, name in zip(uids, flavors, strict=True) if name}


def is_legal(snapshot: Snapshot, chosen: Mapping[str, str], cap_w: float | None) -> bool:
    jobs = {one.uid: one for one in snapshot.pending}
    held = [(jobs[uid], name) for uid, name in chosen.items()]
    if any(one.flavors and name not in one.flavors for one, name in held):
        return False
    watts = sum(one.shape.devices * WATTS[name] for one, name in held)
    return (cap_w is None or watts <= cap_w) and all(
        devices(held, name) <= free_of(snapshot, name)
        and all(
            1000 * devices(held, name, tenant.slug) <= tenant.quotas[name].nominal
            for tenant in snapshot.tenants
        )
        for name in WATTS
    )


def devices(held: list[tuple[JobSpec, str]], flavor: str, tenant: str = "") -> int:
    return sum(
        one.shape.devices
        for one, name in held
        if name == flavor and (not tenant or one.tenant == tenant)
    )


def free_of(snapshot: Snapshot, flavor: str) -> int:
    names = [one.name for one in snapshot.fleet.flavors]
    return int((snapshot.fleet.device_flavor == names.index(flavor)).sum())


@settings(max_examples=60, deadline=None)
@given(small_worlds())
def test_the_program_is_as_good_as_trying_everything(case: tuple[Snapshot, Policy]) -> None:
    snapshot, policy = case
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=10.0)
    objective = Objective(Turns(snapshot, policy, now_s=NOW_S))
    anywhere = (ReplicaPlacement(0, (), 0, 0),)
    best = max(
        objective.value(objective.after([Start(uid, anywhere, f) for uid, f in chosen.items()]))
        for chosen in every_choice(snapshot)
        if is_legal(snapshot, chosen, policy.power_cap_w)
    )
    found = objective.value(objective.after(plan.starts))
    assert plan.solver.status in {"optimal", "rules_kept", "not_needed"}
    assert best - TOLERANCE <= found <= best + 1e-9
    assert plan.solver.objective_rules is not None
    assert found >= plan.solver.objective_rules
