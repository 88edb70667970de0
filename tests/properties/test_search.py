"""The search for room against every set of losers there is, each tried on the engine's trial."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob, Snapshot
from scheduler.decide.preemption.claim import Claim
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import losers_of
from scheduler.decide.preemption.search import cheapest_room
from scheduler.decide.preemption.trial import Trial
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world
from tests.properties.test_preemption import trees

MOST_LOSERS = 7


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Snapshot, Policy]:
    """Draw a site that is nearly full of jobs of all sizes, and a few jobs that wait for long.

    Half of the sites are of three tenants, of which one asks and owns something.
    """
    plain = draw(st.booleans())
    tenants, owned = draw(trees()), st.integers(0, 4)
    if plain:
        quotas = {slug: draw(owned) for slug in "bc"} | {"a": draw(st.integers(1, 6))}
        tenants = [tenant("all", a100=0)]
        tenants += [tenant(slug, under="all", a100=n) for slug, n in sorted(quotas.items())]
    slugs = [one.slug for one in tenants]
    askers, others = (["a"], ["b", "b", "c"]) if plain else (slugs, slugs)
    fleet, held, first = FleetBuilder().flavor("a100"), list[RunningJob](), 0
    for n in range(draw(st.integers(1, 3))):
        devices = draw(st.sampled_from([2, 4]))
        fleet.node(f"n{n}", cpu=16, devices=devices)
        at = first
        while at < first + devices:
            size = min(draw(st.sampled_from([1, 1, 2, 4])), first + devices - at)
            cells = range(at, at + size)
            if draw(st.integers(0, 9)) and len(held) < MOST_LOSERS:
                held.append(draw(_busy(f"r{len(held)}", others, n, list(cells))))
            at += size
        first += devices
    queue = [draw(_waits(f"j{k}", askers)) for k in range(draw(st.integers(1, 3)))]
    law = PreemptionPolicy(by_priority=draw(st.booleans()))
    cap_w = draw(st.sampled_from([None, None, 1600.0]))
    policy = Policy(strategy="rules", preemption=law, power_cap_w=cap_w)
    return world(fleet, queue, running=held, tenants=tenants), policy


@st.composite
def _busy(draw: st.DrawFn, uid: str, slugs: list[str], node: int, cells: list[int]) -> RunningJob:
    elastic = len(cells) > 1 and draw(st.booleans())
    spec = job(
        uid,
        tenant=draw(st.sampled_from(slugs)),
        devices=1 if elastic else len(cells),
        replicas_max=len(cells) if elastic else 1,
        priority=draw(st.integers(0, 1)),
        limit_s=1e5,
    )
    spec = replace(spec, preemptible=draw(st.integers(0, 7)) > 0)
    parts = [[cell] for cell in cells] if elastic else [cells]
    places = tuple(running(spec, node, part).replicas[0] for part in parts)
    ran_s = draw(st.sampled_from([100.0, 700.0, 1300.0, 5000.0]))
    saved_s = draw(st.sampled_from([None, NOW_S - 50]))
    return RunningJob(spec, places, NOW_S - ran_s, saved_s)


@st.composite
def _waits(draw: st.DrawFn, uid: str, slugs: list[str]) -> JobSpec:
    return job(
        uid,
        tenant=draw(st.sampled_from(slugs)),
        devices=draw(st.sampled_from([1, 1, 2, 3])),
        replicas=draw(st.sampled_from([1, 1, 2, 4])),
        priority=draw(st.integers(0, 1)),
        submitted_s=NOW_S - 9000,
        limit_s=draw(st.sampled_from([600.0, 2e5])),
    )


@settings(max_examples=600, deadline=None)
@given(crowded())
def test_no_set_of_losers_is_cheaper_than_what_is_found(drawn: tuple[Snapshot, Policy]) -> None:
    session = (turns := Turns(drawn[0], drawn[1], now_s=NOW_S)).session
    laws, losers = Laws(session.tree, session.snapshot.tenants), losers_of(session)
    for one in session.held.active:
        laws.book(one.hold.tenant, one.hold.charges)
    for spec in turns.candidates if losers.jobs else ():
        room = cheapest_room(session, laws, losers, spec)
        for flavor in session.allowed(spec):
            trial = _trial(turns, laws, spec, flavor)
            if trial.fits():  # nothing has to be taken
                continue
            for i in range(len(losers.jobs)):
                for replica in range(int(losers.replicas[i])):
                    trial.shrink(i, replica)
            assert room or not trial.fits(), f"{spec.uid} could have had room by shrinking alone"
            assert not (room and room.price[0] and trial.fits()), f"evicted for {spec.uid} in vain"
            for price, some in _sets(losers.priority.tolist(), losers.lost.tolist()):
                if room is None or not room.price[0] or price < room.price[1:3]:
                    again = _trial(turns, laws, spec, flavor)
                    fits = all(again.evict(i) for i in some) and again.fits()
                    cheaper = fits and (room is None or room.price[0])
                    assert not cheaper, f"{spec.uid} takes {room}, and {some} for {price} would do"


def _trial(turns: Turns, laws: Laws, spec: JobSpec, flavor: int) -> Trial:
    session, losers = turns.session, losers_of(turns.session)
    claim = Claim(
        laws.copy(),
        losers,
        session.policy.preemption,
        spec,
        taker=session.tree.index[spec.tenant],
        charges=session.charges(spec, flavor, spec.replicas_min),
    )
    nodes = np.arange(session.layout.nodes)
    return Trial(session, spec, flavor, claim=claim, losers=losers, nodes=nodes)


def _sets(
    levels: list[int], works: list[float]
) -> Iterator[tuple[tuple[int, float], tuple[int, ...]]]:
    for n in range(1, len(levels) + 1):
        for some in combinations(range(len(levels)), n):
            yield (max(levels[i] for i in some), sum(works[i] for i in some)), some
