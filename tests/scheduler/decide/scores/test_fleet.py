import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.packing_placer import nothing_kept, place_all, value_all
from scheduler.choices import STRATEGY_NAMES, PlacementScore, Solver
from scheduler.core.policy import SOLVERS, Policy
from scheduler.core.snapshot import DemandKind
from scheduler.decide.scores.choice import SCORES as COMPILED
from scheduler.decide.scores.choice import Scoring
from scheduler.decide.scores.learnt import Setting, terms_of
from scheduler.decide.scores.state import Nodes, Shapes, kind_of, mix_of, scale_of
from scheduler.decide.scoring import LEARNING, SCORES
from scheduler.decide.session import Session
from scheduler.decide.strategies.base import STRATEGIES
from tests.builders import NOW_S, FleetBuilder, job, running, world

KINDS = {  # (cores, devices, milli): how often it is asked for
    (4, 1, 300): 9.0,
    (6, 1, 460): 7.0,
    (2, 1, 810): 5.0,
    (8, 1, 1000): 6.0,
    (16, 2, 1000): 3.0,
    (60, 8, 1000): 1.0,
    (10, 0, 1000): 4.0,
}
LEARNT = ("dotprod", "gpupacking", "gpuclustering", *LEARNING)


def kind_mix():
    return tuple(
        DemandKind(job("x", cpu=cpu, devices=devices, milli=milli).shape, (), count)
        for (cpu, devices, milli), count in KINDS.items()
    )


def session_of(fleet, placement, *, at=(), mix=()):
    snapshot = replace(world(fleet, running=at), demand_mix=mix)
    return Session(snapshot, Policy(placement=placement), now_s=NOW_S)


def node_of(session, spec):
    fit = session.fit_now(spec)
    return session.take(spec, fit)[0][0] if fit else None


@pytest.mark.parametrize("placement", LEARNT)
def test_the_engine_places_as_the_benchmark_does(placement):
    fleet = FleetBuilder()
    for k in range(6):
        fleet.node(f"n{k}", cpu=64, devices=8 if k < 4 else 4)
    asked = np.random.default_rng(3).choice(len(KINDS), size=90)
    session = session_of(fleet, placement, mix=kind_mix())
    found = []
    for uid, kind in enumerate(asked.tolist()):
        cpu, devices, milli = list(KINDS)[kind]
        spec = job(f"{uid}", tenant="t", cpu=cpu, memory_mib=1, devices=devices, milli=milli)
        held = session.fit_now(replace(spec, tenant="t"))
        found.append(session.take(spec, held)[0][0].node if held else -1)
    assert found == benchmark_places(placement, asked)
    assert -1 in found  # the fleet was filled


def benchmark_places(placement, asked):
    devices = np.array([8, 8, 8, 8, 4, 4], dtype=np.int64)
    nodes = Nodes(
        np.full(6, 64_000, dtype=np.int64),
        np.full(6, 512_000, dtype=np.int64),
        np.where(np.arange(8) < devices[:, None], 1000, 0).astype(np.int64),
        devices.copy(),
        np.ones(6, dtype=np.int64),
        np.zeros((6, 6), dtype=np.int64),
    )
    table = np.array(
        [
            (cpu * 1000, 1, count, milli if count else 0, 0, kind_of(count, milli))
            for cpu, count, milli in KINDS
        ],
        dtype=np.int64,
    )
    shapes = Shapes(*(np.ascontiguousarray(table[:, k]) for k in range(6)))
    counts = np.array(list(KINDS.values()))
    scale = scale_of(nodes.cpu, devices, np.array([40]), nodes.model)
    mix, terms = terms_of(shapes, counts, Setting(), scale)
    mix = mix_of(shapes, counts, cover=0.95) if placement == "fgd" else mix
    scoring = Scoring(COMPILED.index(placement), nodes, shapes, mix, terms, scale)
    kept = nothing_kept(len(KINDS), 6)
    placed = np.full(len(asked), -1, dtype=np.int64)
    value_all(scoring, kept)
    place_all(scoring, kept, asked, placed)
    return placed.tolist()


def test_fgd_keeps_whole_devices_for_those_who_are_likely_to_ask_for_them():
    # Only whole devices are asked for. n0 has 0.5 free, useless already; on n1 a half would
    # spoil a whole one.
    fleet = FleetBuilder().node("n0", devices=1).node("n1", devices=1)
    half = running(job("a", devices=1, milli=500), 0, [0], gpu_memory_mib=40_000)
    mix = (DemandKind(job("x", devices=1).shape, (), 1.0),)
    session = session_of(fleet, "fgd", at=[half], mix=mix)
    assert node_of(session, job("b", devices=1, milli=400)).node == 0
    assert node_of(session, job("c", devices=1, milli=400)).node == 1


def test_a_device_whose_memory_is_taken_is_not_chosen():
    # Both devices have half free; the memory of the first is full.
    fleet = FleetBuilder().node("n0", devices=2)
    full = running(job("a", devices=1, milli=500), 0, [0], gpu_memory_mib=80_000)
    half = running(job("b", devices=1, milli=500), 0, [1], gpu_memory_mib=40_000)
    for placement in SCORES:
        session = session_of(fleet, placement, at=[full, half], mix=kind_mix())
        spec = job("c", devices=1, milli=500, gpu_memory_mib=30_000)
        assert node_of(session, spec).devices == (1,)


def test_clustering_sees_what_runs_and_what_this_cycle_has_started():
    fleet = FleetBuilder().node("n0", devices=8).node("n1", devices=8)
    whole = running(job("a", devices=1), 1, [8])
    session = session_of(fleet, "gpuclustering", at=[whole])
    assert node_of(session, job("b", devices=1)).node == 1  # 75 beside its like, 25 alone
    assert node_of(session, job("c", devices=1, milli=500)).node == 0  # 25 alone, 0 beside others
    assert node_of(session, job("d", devices=1, milli=500)).node == 0


def test_a_flavor_that_no_node_has_is_no_reason_to_keep_room():
    mix = (DemandKind(job("x", devices=1).shape, ("h100",), 1.0),)
    fleet = FleetBuilder().node("n0", devices=2)
    session = session_of(fleet, "fgd", mix=mix)
    assert node_of(session, job("b", devices=1, milli=400)).node == 0


def test_the_names_that_an_admin_may_choose_are_those_of_the_engine():
    assert list(PlacementScore.values) == list(SCORES)
    assert tuple(Solver.values) == SOLVERS
    assert set(STRATEGY_NAMES) == set(STRATEGIES)


def test_nobody_loads_numba_who_does_not_choose_a_compiled_score():
    probe = "import scheduler.decide.cycle, sys; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
