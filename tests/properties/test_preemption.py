"""What holds of preemption on random fleets, trees and streams, over many cycles."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.plan import Preempt
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import JobSpec, QuotaLine, TenantNode
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import losers_of
from scheduler.decide.preemption.search import cheapest_room
from scheduler.decide.turns import Turns
from tests.builders import FleetBuilder, job, tenant
from tests.properties.laws import Tree, broken_laws, broken_shrinks
from tests.properties.streams import Toy

SHAPES = {
    "flat": {"all": None, "x": "all", "y": "all", "z": "all"},
    "deep": {"all": None, "left": "all", "x": "left", "y": "left", "z": "all", "w": "z"},
    "forest": {"x": None, "y": None, "z": "x", "w": "z"},
}
LAW = PreemptionPolicy(delay_s=20.0, min_runtime_s=40.0, grace_s=10.0)


@st.composite
def trees(draw: st.DrawFn) -> list[TenantNode]:
    parents = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    flavors = draw(st.sampled_from([("a100",), ("a100",), ("a100", "cpu"), ("a100", "h100")]))
    amounts = st.sampled_from([0, 1000, 1000, 2000, 4000])
    limits = st.sampled_from([None, None, None, None, 0, 1000, 3000])
    return [
        TenantNode(
            slug,
            parent,
            draw(st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.5, 0.0])),
            {name: QuotaLine(draw(amounts), draw(limits), draw(limits)) for name in flavors},
            preemption_fence=draw(st.integers(0, 7)) == 7,
        )
        for slug, parent in parents.items()
    ]


@st.composite
def specs(draw: st.DrawFn, uid: str, tenants: list[TenantNode]) -> JobSpec:
    replicas = draw(st.sampled_from([1, 1, 1, 2]))
    spec = job(
        uid,
        tenant=draw(st.sampled_from([t.slug for t in tenants])),
        devices=draw(st.sampled_from([1, 1, 1, 0, 2])),
        replicas=replicas,
        replicas_max=replicas + draw(st.sampled_from([0, 0, 2])),
        flavors=draw(st.sampled_from([(), ("a100",), ("a100",)])),
        priority=draw(st.integers(0, 1)),
        limit_s=100_000.0,
    )
    return replace(spec, preemptible=draw(st.integers(0, 7)) < 7)


@st.composite
def toys(draw: st.DrawFn, policy: PreemptionPolicy = LAW) -> Toy:
    fleet = FleetBuilder().flavor("a100").flavor("h100")
    for i in range(draw(st.integers(1, 2))):
        flavor = draw(st.sampled_from(["a100", "a100", "h100"]))
        fleet.node(f"n{i}", cpu=6, devices=draw(st.integers(2, 4)), flavor=flavor)
    law = replace(policy, by_priority=draw(st.booleans()), by_fair_share=draw(st.booleans()))
    return Toy(fleet, draw(trees()), Policy(strategy="rules", preemption=law))


def fill(data: st.DataObject, toy: Toy, *, lasts_s: float = 900.0) -> None:
    """Let one tenant take what it can get before anybody else comes."""
    slug = data.draw(st.sampled_from([t.slug for t in toy.tenants]))
    for _ in range(data.draw(st.integers(2, 6))):
        spec = data.draw(specs(f"j{len(toy.lasts_s):02d}", list(toy.tenants)))
        toy.arrive(replace(spec, tenant=slug, priority=0), lasts_s)
    toy.cycle()
    toy.pass_time(60.0)


def queue_up(data: st.DataObject, toy: Toy, count: int, *, lasts_s: float | None = None) -> None:
    for _ in range(data.draw(st.integers(1, count))):
        spec = data.draw(specs(f"j{len(toy.lasts_s):02d}", list(toy.tenants)))
        toy.arrive(spec, lasts_s or data.draw(st.sampled_from([100.0, 900.0, 900.0])))


@settings(max_examples=35, deadline=None)
@given(toys(), st.data())
def test_every_eviction_keeps_every_law(toy: Toy, data: st.DataObject) -> None:
    sides: list[tuple[float, Preempt]] = []
    fill(data, toy)
    tenants = {job.spec.uid: job.spec.tenant for job in toy.running.values()}
    for _ in range(10):
        queue_up(data, toy, 3)
        snapshot, plan = toy.cycle()
        assert broken_laws(snapshot, plan, toy.policy.preemption) == []
        assert broken_shrinks(snapshot, plan, toy.policy.preemption) == []
        tenants |= {spec.uid: spec.tenant for spec in snapshot.pending}
        for preempt in plan.preempts:
            _check_not_in_turn(toy, tenants, sides, preempt)
            sides.append((toy.now_s, preempt))
        toy.pass_time(data.draw(st.sampled_from([10.0, 45.0, 120.0])))
    most = toy.policy.preemption.most_evictions
    assert all(spec.preempted_count <= most for spec in toy.waiting.values())


def _check_not_in_turn(
    toy: Toy, tenants: dict[str, str], before: list[tuple[float, Preempt]], now: Preempt
) -> None:
    """Where B evicts A that evicted B, another job has begun on A's side since."""
    for at_s, earlier in before:
        if (earlier.uid, earlier.beneficiary) == (now.beneficiary, now.uid):
            tree = Tree(toy.tenants, "a100")
            theirs = tree.line(tenants[now.beneficiary])
            side = [s for s in tree.line(tenants[now.uid]) if s not in theirs]
            grown = [
                uid
                for started_s, uid in toy.started
                if started_s >= at_s
                and uid not in {now.uid, now.beneficiary}
                and set(side) & set(tree.line(tenants[uid]))
            ]
            assert grown, f"{now.uid} and {now.beneficiary} evict each other"


@settings(max_examples=25, deadline=None)
@given(toys(replace(LAW, most_evictions=1_000_000)), st.data())
def test_evictions_come_to_rest_where_nothing_else_happens(toy: Toy, data: st.DataObject) -> None:
    """Nobody arrives any more, nobody ends, and no count of evictions stops anybody."""
    fill(data, toy, lasts_s=1e9)
    for _ in range(3):
        queue_up(data, toy, 4, lasts_s=1e9)
        toy.cycle()
        toy.pass_time(60.0)
    seen = 0
    for _ in range(60):
        _, plan = toy.cycle()
        seen = 0 if plan.preempts or plan.starts or toy.targets else seen + 1
        if seen == 3:
            break
        toy.pass_time(60.0)
    assert seen == 3, toy.evictions


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_who_is_within_its_quota_waits_no_longer_than_the_delay(data: st.DataObject) -> None:
    """One device a job, quotas that add up to the fleet, everybody may be evicted."""
    law = replace(LAW, min_runtime_s=0.0, most_evictions=1_000_000)
    quotas = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=4))
    fleet = FleetBuilder().flavor("a100").node("n", cpu=64, devices=sum(quotas))
    tenants = [tenant("all", a100=0)]
    tenants += [tenant(f"t{i}", under="all", a100=n) for i, n in enumerate(quotas)]
    toy = Toy(fleet, tenants, Policy(strategy="rules", preemption=law))
    for _ in range(15):
        for i in range(len(quotas)):
            for _ in range(data.draw(st.integers(0, 1))):
                toy.arrive(job(f"j{len(toy.lasts_s):02d}", tenant=f"t{i}", devices=1), 300.0)
        before = dict(toy.waiting)
        _, plan = toy.cycle()
        _check_nobody_starves(toy, before, quotas)
        assert len(plan.preempts) <= 8
        toy.pass_time(20.0)


def _check_nobody_starves(toy: Toy, before: dict[str, JobSpec], quotas: list[int]) -> None:
    for i, quota in enumerate(quotas):
        mine = [r for r in toy.running.values() if r.spec.tenant == f"t{i}" and r.ending_s is None]
        promised = [s for s in toy.waiting.values() if s.tenant == f"t{i}" and s.promised_s]
        patient = [
            spec.uid
            for spec in toy.waiting.values()
            if spec.tenant == f"t{i}"
            and not spec.promised_s
            and spec.uid in before
            and toy.now_s - spec.submitted_s >= LAW.delay_s
        ]
        assert not patient or len(mine) + len(promised) >= quota, (i, quota, patient)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_nobody_waits_for_its_own_while_others_could_lawfully_give_it(data: st.DataObject) -> None:
    """Gangs, large and elastic jobs on one node, quotas that add up to it, a least run time.

    Not in one cycle only: what starts behind a job in the queue may change what is lawful.
    """
    law = replace(LAW, most_evictions=1_000_000)
    quotas = data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=3))
    fleet = FleetBuilder().flavor("a100").node("n", cpu=64, devices=max(1, sum(quotas)))
    tenants = [tenant("all", a100=0)]
    tenants += [tenant(f"t{i}", under="all", a100=n) for i, n in enumerate(quotas)]
    toy = Toy(fleet, tenants, Policy(strategy="rules", preemption=law))
    starved = set[str]()
    for _ in range(12):
        for i in range(len(quotas)):
            for _ in range(data.draw(st.integers(0, 2))):
                least = data.draw(st.sampled_from([1, 1, 2]))
                spec = job(
                    f"j{len(toy.lasts_s):02d}",
                    tenant=f"t{i}",
                    devices=data.draw(st.sampled_from([1, 1, 2, 4])),
                    replicas=least,
                    replicas_max=least + data.draw(st.sampled_from([0, 0, 2])),
                    limit_s=100_000.0,
                )
                toy.arrive(spec, data.draw(st.sampled_from([90.0, 5000.0])))
        before = dict(toy.waiting)
        toy.cycle()
        now = {spec.uid for spec in before.values() if _could_have_its_own(toy, spec, quotas)}
        assert not now & starved, (toy.now_s, sorted(now & starved))
        starved = now
        toy.pass_time(20.0)


def _could_have_its_own(toy: Toy, spec: JobSpec, quotas: list[int]) -> bool:
    """Return whether a job waits for what is its tenant's, and some jobs could lawfully give it."""
    asks_s = max(spec.submitted_s, toy.waiting.get(spec.uid, spec).promised_s) + LAW.delay_s
    if spec.uid not in toy.waiting or asks_s > toy.now_s or toy.waiting[spec.uid].promised_s:
        return False
    held = dict.fromkeys((f"t{i}" for i in range(len(quotas))), 0)
    for one in toy.running.values():
        stays = one.replicas if one.ending_s is None else one.keeps
        held[one.spec.tenant] += one.spec.shape.devices * len(stays)
    for other in toy.waiting.values():
        if other.promised_s:
            held[other.tenant] += other.shape.devices * other.replicas_min
    wants, spare = spec.shape.devices * spec.replicas_min, dict(zip(held, quotas, strict=True))
    lacks = wants - (sum(quotas) - sum(held.values()))
    if lacks <= 0 or held[spec.tenant] + wants > spare.pop(spec.tenant):
        return False
    return any(
        sum(given.values()) >= lacks and all(held[t] - given[t] >= spare[t] for t in spare)
        for given in _gifts(toy, sorted(spare))
    )


def _gifts(toy: Toy, tenants: list[str]) -> Iterator[Counter[str]]:
    """Give tenant -> devices for every choice of who shrinks by how much and who is evicted."""
    choices = []
    for one in toy.running.values():
        if one.spec.tenant in tenants and one.ending_s is None and one.started_s < toy.now_s:
            extra, each = len(one.replicas) - one.spec.replicas_min, one.spec.shape.devices
            given = [each * n for n in range(max(0, extra) + 1)]
            if toy.now_s - one.started_s >= LAW.min_runtime_s:
                given.append(each * len(one.replicas))
            choices.append([(one.spec.tenant, amount) for amount in given])
    for some in product(*choices):
        found = Counter[str]()
        for slug, amount in some:
            found[slug] += amount
        yield found


@settings(max_examples=60, deadline=None)
@given(toys(), st.data())
def test_a_search_changes_nothing(toy: Toy, data: st.DataObject) -> None:
    fill(data, toy)
    for _ in range(2):
        queue_up(data, toy, 4)
        toy.cycle()
        toy.pass_time(60.0)
    turns = Turns(toy.snapshot(), toy.policy, now_s=toy.now_s)
    session = turns.session
    laws, losers = Laws(session.tree, session.snapshot.tenants), losers_of(session)
    for one in session.held.active:
        laws.book(one.hold.tenant, one.hold.charges)
    profile = session.profile
    rows = range(len(profile.times))
    nodes = np.arange(session.layout.nodes)

    def state() -> tuple[object, ...]:
        block = profile.block(0, len(rows), nodes)
        return (
            *(table.tobytes() for table in block),
            profile.ledger.usage.tobytes(),
            tuple(profile.times),
            tuple(profile.rows),
            len(profile.touched),
            profile.version,
            profile.first_reserved_s,
            tuple(session.held.active),
            laws.own.tobytes(),
            laws.ledger.usage.tobytes(),
            losers.extra.tobytes(),
            losers.evictable.tobytes(),
        )

    before = state()
    for spec in turns.candidates:
        cheapest_room(session, laws, losers, spec)
        assert state() == before


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(toys(), st.data())
def test_long_streams_keep_every_law(toy: Toy, data: st.DataObject) -> None:
    fill(data, toy)
    for _ in range(25):
        queue_up(data, toy, 4)
        snapshot, plan = toy.cycle()
        assert broken_laws(snapshot, plan, toy.policy.preemption) == []
        assert broken_shrinks(snapshot, plan, toy.policy.preemption) == []
        toy.pass_time(data.draw(st.sampled_from([5.0, 10.0, 45.0, 120.0])))
