import numpy as np

from benchmarks.packing_moves import World, nothing_held, place_or_move
from benchmarks.packing_placer import nothing_kept, value_all
from scheduler.decide.scores.choice import SCORES, Scoring
from scheduler.decide.scores.learnt import Setting, terms_of
from scheduler.decide.scores.state import Nodes, mix_of, scale_of
from tests.benchmarks.test_packing_placer import shapes_of


def nodes_of(*rows):
    """Return nodes of ten cores and two device slots, given the free milli of their devices."""
    milli = np.array(rows, dtype=np.int64)
    count = len(rows)
    return Nodes(
        np.full(count, 10_000, dtype=np.int64),
        np.full(count, 100, dtype=np.int64),
        milli,
        (milli > 0).sum(axis=1).astype(np.int64),
        np.ones(count, dtype=np.int64),
        np.zeros((count, 6), dtype=np.int64),
    )


def scoring_of(nodes, shapes):
    """Return best fit, which a hand can follow: the fullest node, and the first of equals."""
    counts = np.ones(len(shapes.cpu))
    scale = scale_of(nodes.cpu, nodes.devices, np.array([int(nodes.devices.sum())]), nodes.model)
    terms = terms_of(shapes, counts, Setting(), scale)[1]
    number = SCORES.index("bestfit")
    return Scoring(number, nodes, shapes, mix_of(shapes, counts), terms, scale)


def world_of(nodes, shapes, arrivals):
    scoring, kept = scoring_of(nodes, shapes), nothing_kept(len(shapes.cpu), len(nodes.cpu))
    value_all(scoring, kept)
    return World(scoring, kept, nothing_held(np.array(arrivals, dtype=np.int64)))


def put(world, job, node, device):
    """Let a fraction run on a device."""
    nodes, shapes, s = world.scoring.nodes, world.scoring.shapes, world.held.shape[job]
    nodes.cpu[node] -= shapes.cpu[s]
    nodes.memory[node] -= shapes.memory[s]
    nodes.milli[node, device] -= shapes.milli[s]
    world.held.node[job], world.held.devices[job] = node, 1 << device


def test_a_fraction_moves_so_that_a_larger_one_fits():
    # 400 and 300 fill the first node, as best fit does, and 500 goes to the second: 300 and 500
    # are left. 600 fits nowhere until the 300 has left for the second node.
    nodes = nodes_of([1000, 0], [1000, 0])
    shapes = shapes_of(*((1_000, 1, 1, milli, 0) for milli in (400, 300, 500, 600)))
    world = world_of(nodes, shapes, [0, 1, 2, 3])
    assert [place_or_move(world, job, 0) for job in range(4)] == [True, True, True, False]
    assert place_or_move(world, 3, 1)
    assert world.held.node.tolist() == [0, 1, 1, 0]
    assert nodes.milli.tolist() == [[0, 0], [200, 0]]
    assert world.held.moves.tolist() == [1]


def test_no_more_jobs_move_than_may():
    # The first node alone has two devices; a fraction runs on each.
    nodes = nodes_of([1000, 1000], [1000, 0], [1000, 0])
    shapes = shapes_of((1_000, 1, 1, 600, 0), (1_000, 1, 2, 1000, 0))
    world = world_of(nodes, shapes, [0, 0, 1])
    put(world, 0, 0, 0)
    put(world, 1, 0, 1)
    assert not place_or_move(world, 2, 1)
    assert place_or_move(world, 2, 2)
    assert world.held.node.tolist() == [1, 2, 0]
    assert nodes.milli.tolist() == [[0, 0], [400, 0], [400, 0]]


def test_if_one_of_those_who_leave_finds_no_place_nobody_moves():
    nodes = nodes_of([1000, 1000], [1000, 0])  # 600 and 600 do not both fit on the second node
    shapes = shapes_of((1_000, 1, 1, 600, 0), (1_000, 1, 2, 1000, 0))
    world = world_of(nodes, shapes, [0, 0, 1])
    put(world, 0, 0, 0)
    put(world, 1, 0, 1)
    assert not place_or_move(world, 2, 2)
    assert world.held.node.tolist() == [0, 0, -1]
    assert nodes.milli.tolist() == [[400, 400], [1000, 0]]
    assert nodes.cpu.tolist() == [8_000, 10_000]
    assert world.held.moves.tolist() == [0]


def test_a_job_without_devices_leaves_where_cpu_is_short():
    # 6 of 10 cores are taken on the first node; a whole device wants 8, and the second has none.
    nodes = nodes_of([1000, 0], [0, 0])
    shapes = shapes_of((6_000, 1, 0, 0, 0), (8_000, 1, 1, 1000, 0))
    world = world_of(nodes, shapes, [0, 1])
    nodes.cpu[0] -= 6_000
    world.held.node[0] = 0
    assert place_or_move(world, 1, 1)
    assert world.held.node.tolist() == [1, 0]
    assert nodes.cpu.tolist() == [2_000, 4_000]
