"""Everything at once: what holds of any world in which every feature of the engine is used."""

import json
from dataclasses import asdict, replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import EvictionCause, Plan, Preempt, Resize, Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import ReplicaPlacement, Snapshot, TenantNode
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import losers_of
from scheduler.decide.preemption.search import cheapest_room
from scheduler.decide.strategies.rules import REPORT
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, with_pending
from tests.properties.advice import assert_advice_is_true
from tests.properties.brute import wrongs
from tests.properties.stories import Story
from tests.properties.wide import policies, wide_worlds

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def plan_of(snapshot: Snapshot, policy: Policy) -> Plan:
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    return plan


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies())
def test_every_plan_of_the_rules_passes_both_checks(snapshot: Snapshot, policy: Policy) -> None:
    plan = plan_of(snapshot, policy)
    verify(snapshot, plan, policy, now_s=NOW_S)
    assert wrongs(snapshot, plan, policy) == []
    for pending in plan.pending:
        p50_s, p90_s = pending.expected_start_p50_s, pending.expected_start_p90_s
        assert (p50_s is None) == (p90_s is None)
        assert p50_s is None or NOW_S <= p50_s <= (p90_s or 0.0)
    json.dumps(asdict(plan), allow_nan=False)  # a numpy scalar or an infinity would raise


@settings(max_examples=12, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies("optimising"))
def test_every_plan_of_the_program_passes_both_checks(snapshot: Snapshot, policy: Policy) -> None:
    plan = plan_of(snapshot, policy)
    verify(snapshot, plan, policy, now_s=NOW_S)
    assert wrongs(snapshot, plan, policy) == []
    worth, rules = plan.solver.objective, plan.solver.objective_rules
    assert worth is None or rules is None or worth >= rules


# -- the order of the input --------------------------------------------------------------------


def shuffled(snapshot: Snapshot, random: Random) -> Snapshot:
    """Return the same world told in another order: every tuple and table whose order is free."""

    def other(values: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(random.sample(values, len(values)))

    tables = ("usage_decayed", "throughputs", "pairs")
    names = ("pending", "running", "reservations", "expectations")
    changes: dict[str, object] = {name: other(getattr(snapshot, name)) for name in names}
    for name in tables:
        changes[name] = dict(other(tuple(getattr(snapshot, name).items())))  # type: ignore[arg-type]
    left, tenants = list(snapshot.tenants), list[TenantNode]()
    while left:
        known = {None, *(tenant.slug for tenant in tenants)}
        one = random.choice([tenant for tenant in left if tenant.parent in known])
        left.remove(one)
        quotas = random.sample(sorted(one.quotas.items(), key=str), len(one.quotas))
        tenants.append(replace(one, quotas=dict(quotas)))
    return replace(snapshot, tenants=tuple(tenants), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@settings(max_examples=12, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(
    strategy: str, snapshot: Snapshot, policy: Policy, random: Random
) -> None:
    policy = replace(policy, strategy=strategy)
    assert plan_of(snapshot, policy) == plan_of(shuffled(snapshot, random), policy)


# -- plans that are changed --------------------------------------------------------------------


def mutated(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    """Return the plan with one thing changed, often to something wrong."""
    changes = [_without_a_start, _start_twice, _moved, _moved, _moved, _resized, _started, _started]
    changes += [_renamed, _of_other_flavor, _evicted, _elsewhere]
    return random.choice(changes)(snapshot, plan, random)


def _one_start(plan: Plan, random: Random, change: object) -> Plan:
    if not plan.starts:
        return plan
    at = random.randrange(len(plan.starts))
    changed = change(plan.starts[at])  # type: ignore[operator]
    return replace(plan, starts=(*plan.starts[:at], changed, *plan.starts[at + 1 :]))


def _without_a_start(_: Snapshot, plan: Plan, random: Random) -> Plan:
    left = list(plan.starts)
    random.shuffle(left)
    return replace(plan, starts=tuple(left[1:]))


def _start_twice(_: Snapshot, plan: Plan, random: Random) -> Plan:
    return replace(plan, starts=plan.starts + tuple(random.sample(plan.starts, len(plan.starts))))


def _replica(
    snapshot: Snapshot, random: Random, devices: int, like: ReplicaPlacement
) -> ReplicaPlacement:
    """Return some devices of some node, as many as there are."""
    fleet = snapshot.fleet
    node = random.randrange(-1, len(fleet.node_names) + 1)
    here = [int(d) for d in range(len(fleet.device_uids)) if fleet.device_node[d] == node]
    wanted = tuple(random.sample(here, min(devices, len(here))))
    return replace(like, node=node, devices=wanted)


def _moved(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    """Put a replica somewhere else, or hold other amounts or devices of the place it has."""

    def change(start: Start) -> Start:
        at = random.randrange(len(start.replicas))
        one = start.replicas[at]
        devices = range(-1, len(snapshot.fleet.device_uids) + 1)
        other = random.choice(
            [
                _replica(snapshot, random, len(one.devices), one),
                replace(one, gpu_milli=random.choice([0, 300, 500, 1000])),
                replace(one, gpu_memory_mib=random.choice([0, 10_000, 90_000])),
                replace(one, devices=tuple(random.choice(devices) for _ in one.devices)),
                replace(one, devices=one.devices[1:]),
            ]
        )
        return replace(start, replicas=(*start.replicas[:at], other, *start.replicas[at + 1 :]))

    return _one_start(plan, random, change)


def _resized(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    def change(start: Start) -> Start:
        if random.random() < 0.5:
            return replace(start, replicas=start.replicas[1:])
        like = start.replicas[0]
        more = _replica(snapshot, random, len(like.devices), like)
        return replace(start, replicas=(*start.replicas, more))

    return _one_start(plan, random, change)


def _started(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    """Start somebody who waits, anywhere."""
    if not plan.pending:
        return plan
    at = random.randrange(len(plan.pending))
    job = next(one for one in snapshot.pending if one.uid == plan.pending[at].uid)
    shape, fleet = job.shape, snapshot.fleet
    count = random.randint(job.replicas_min, job.replicas_max)
    like = ReplicaPlacement(0, (), shape.gpu_milli, shape.gpu_memory_mib)
    places = tuple(_replica(snapshot, random, shape.devices, like) for _ in range(count))
    held = [device for place in places for device in place.devices]
    flavor = fleet.flavors[int(fleet.device_flavor[held[0]])].name if held else ""
    start = Start(job.uid, places, flavor)
    pending = (*plan.pending[:at], *plan.pending[at + 1 :])
    return replace(plan, starts=(*plan.starts, start), pending=pending)


def _renamed(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    uids = [job.uid for job in snapshot.pending] + ["nobody"]
    return _one_start(plan, random, lambda start: replace(start, uid=random.choice(uids)))


def _of_other_flavor(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    names = [flavor.name for flavor in snapshot.fleet.flavors] + [""]
    return _one_start(plan, random, lambda start: replace(start, flavor=random.choice(names)))


def _elsewhere(_: Snapshot, plan: Plan, random: Random) -> Plan:
    later = replace(plan, now_s=plan.now_s + 60)
    return random.choice([replace(plan, cluster="other"), later])


def _evicted(snapshot: Snapshot, plan: Plan, random: Random) -> Plan:
    """Evict or shrink somebody who runs for somebody who waits for that."""
    if not (snapshot.running and snapshot.pending):
        return plan
    job, taker = random.choice(snapshot.running), random.choice(snapshot.pending)
    waits = tuple(
        replace(one, code=WaitReason.WAITING_FOR_PREEMPTED_JOBS) if one.uid == taker.uid else one
        for one in plan.pending
    )
    plan = replace(plan, pending=waits) if random.random() < 0.8 else plan
    if random.random() < 0.3:
        kept = job.replicas[: random.randint(0, len(job.replicas))]
        causes = [EvictionCause.RECLAIMED, EvictionCause.PREEMPTED, EvictionCause.SHARED]
        shrinks, speaks_true = random.random() < 0.6, random.random() < 0.9
        cause = random.choice(causes) if shrinks is speaks_true else None
        one = Resize(job.spec.uid, kept, taker.uid if shrinks else "", cause)
        return replace(plan, resizes=(*plan.resizes, one))
    law = random.random()
    by_law = EvictionCause.RECLAIMED if law < 0.5 else EvictionCause.PREEMPTED
    named = EvictionCause.SHARED if law > 0.9 else by_law
    return replace(plan, preempts=(*plan.preempts, Preempt(job.spec.uid, taker.uid, named)))


@settings(max_examples=150, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies(), st.randoms(use_true_random=False))
def test_the_verifier_refuses_what_trying_every_rule_refuses(
    snapshot: Snapshot, policy: Policy, random: Random
) -> None:
    """A plan of the rules is changed again and again; what is lost together counts in both."""
    plan = plan_of(snapshot, policy)
    for _ in range(12):
        changed = mutated(snapshot, plan, random)
        found, refused = wrongs(snapshot, changed, policy), refusal_of(snapshot, changed, policy)
        assert bool(found) == bool(refused) or "pushed below" in refused, (found, refused)


def refusal_of(snapshot: Snapshot, plan: Plan, policy: Policy) -> str:
    try:
        verify(snapshot, plan, policy, now_s=NOW_S)
    except InvalidPlanError as refused:
        return str(refused)
    return ""


# -- what would help ----------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies())
def test_what_would_help_helps_when_tried(snapshot: Snapshot, policy: Policy) -> None:
    assert_advice_is_true(snapshot, lambda world: plan_of(world, policy))


# -- who comes first -----------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies(), st.randoms(use_true_random=False))
def test_a_waiting_job_taken_away_delays_nobody_ahead_of_it(
    snapshot: Snapshot, policy: Policy, random: Random
) -> None:
    """Nothing ahead is decided otherwise, as long as the order of the others stays."""
    policy = replace(policy, order=replace(policy.order, fair_share=0.0))
    before = order_of(snapshot, policy)
    waiting = [p.uid for p in plan_of(snapshot, policy).pending if p.position]
    if not waiting:
        return
    gone = random.choice(waiting)
    less = with_pending(snapshot, [job for job in snapshot.pending if job.uid != gone])
    after = order_of(less, policy)
    ahead = list(before)[: list(before).index(gone)]
    if list(after)[: len(ahead)] == ahead:
        assert {uid: after[uid] for uid in ahead} == {uid: before[uid] for uid in ahead}


def order_of(snapshot: Snapshot, policy: Policy) -> dict[str, tuple[object, ...]]:
    """Return uid -> what was decided at its turn, in order of the turns."""
    turns, found = Turns(snapshot, policy, now_s=NOW_S), dict[str, tuple[object, ...]]()
    for ranked in turns.queue():
        turns.turn(ranked)
        draft = turns.draft(REPORT)
        started = [start.replicas for start in draft.starts if start.uid == ranked.job.uid]
        codes = [p.code for p in draft.pending if p.uid == ranked.job.uid]
        told = [p.uid for p in draft.preempts if p.beneficiary == ranked.job.uid]
        found[ranked.job.uid] = (*started, *codes, *told)
    return found


# -- what is tried leaves no trace ---------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies())
def test_a_search_for_room_changes_nothing(snapshot: Snapshot, policy: Policy) -> None:
    turns = Turns(snapshot, policy, now_s=NOW_S)
    session = turns.session
    laws, losers = Laws(session.tree, snapshot.tenants), losers_of(session)
    for one in session.held.active:
        laws.book(one.hold.tenant, one.hold.charges)

    def state() -> tuple[object, ...]:
        profile = session.profile
        block = profile.block(0, len(profile.times), np.arange(session.layout.nodes))
        return (
            *(table.tobytes() for table in block),
            profile.ledger.usage.tobytes(),
            (tuple(profile.times), tuple(profile.rows), profile.version, len(profile.touched)),
            tuple(session.held.active),
            laws.own.tobytes(),
            laws.ledger.usage.tobytes(),
            (losers.extra.tobytes(), losers.evictable.tobytes()),
        )

    before = state()
    for job in turns.candidates:
        cheapest_room(session, laws, losers, job)
        assert state() == before


# -- cycle after cycle ---------------------------------------------------------------------------


@settings(max_examples=40, suppress_health_check=SLOW_TO_DRAW)
@given(wide_worlds(), policies(), st.randoms(use_true_random=False))
def test_plans_that_come_true_are_sound_and_nobody_is_evicted_in_turn(
    snapshot: Snapshot, policy: Policy, random: Random
) -> None:
    """Who evicted somebody is not evicted for that one, unless others started in between."""
    story = Story(snapshot, policy)
    for _ in range(6):
        plan = decide(story.snapshot, policy, now_s=story.snapshot.now_s, budget_s=5.0)
        assert plan.solver.status != "invalid", plan.solver.note
        assert wrongs(story.snapshot, plan, policy) == []
        story.follow(plan)
        assert story.in_turn() == []
        story.pass_time(random.choice([10.0, 70.0, 700.0]))
