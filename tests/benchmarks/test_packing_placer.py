import numpy as np

from benchmarks.packing_placer import (
    nothing_kept,
    place_all,
    seed_chance,
    value_all,
)
from scheduler.decide.scores.choice import SCORES, Scoring
from scheduler.decide.scores.learnt import Setting, terms_of
from scheduler.decide.scores.state import Nodes, Shapes, kind_of, mix_of, scale_of


def small_nodes():
    return Nodes(
        np.array([16_000, 16_000, 4_000], dtype=np.int64),
        np.array([100, 100, 100], dtype=np.int64),
        np.array([[1000, 1000], [1000, 1000], [1000, 0]], dtype=np.int64),
        np.array([2, 2, 1], dtype=np.int64),
        np.array([1, 2, 1], dtype=np.int64),
        np.zeros((3, 6), dtype=np.int64),
    )


def shapes_of(*rows):
    """Return shapes of (cpu, memory, devices, milli, models)."""
    table = np.array([[*r, kind_of(r[2], r[3])] for r in rows], dtype=np.int64)
    return Shapes(*(np.ascontiguousarray(table[:, k]) for k in range(6)))


def placed_by(score, nodes, shapes, arrivals):
    arrivals = np.array(arrivals, dtype=np.int64)
    counts = np.bincount(arrivals, minlength=len(shapes.cpu)).astype(np.float64)
    scale = scale_of(nodes.cpu, nodes.devices, np.array([3, 2]), nodes.model)
    mix, (_, terms) = mix_of(shapes, counts), terms_of(shapes, counts, Setting(), scale)
    kept = nothing_kept(len(shapes.cpu), len(nodes.cpu))
    placed, number = np.full(len(arrivals), -1, dtype=np.int64), SCORES.index(score)
    scoring = Scoring(number, nodes, shapes, mix, terms, scale)
    value_all(scoring, kept)
    place_all(scoring, kept, arrivals, placed)
    return placed.tolist()


def test_bestfit_takes_the_smallest_node_and_then_the_first_of_equals():
    shapes = shapes_of((2_000, 1, 1, 1000, 0))
    assert placed_by("bestfit", small_nodes(), shapes, [0, 0, 0, 0, 0, 0]) == [2, 0, 0, 1, 1, -1]


def test_a_model_is_a_condition():
    nodes = small_nodes()
    assert placed_by("fgd", nodes, shapes_of((1_000, 1, 1, 1000, 2)), [0, 0, 0]) == [1, 1, -1]
    assert nodes.milli.tolist() == [[1000, 1000], [0, 0], [1000, 0]]


def test_two_halves_share_one_device_so_that_four_whole_jobs_still_fit():
    for score in ("fgd", "prices"):
        shapes = shapes_of((1_000, 1, 1, 500, 0), (1_000, 1, 1, 1000, 0))
        nodes = small_nodes()
        nodes.cpu[:] *= 10  # where CPU is short, prices spread over it instead
        first, second, *whole = placed_by(score, nodes, shapes, [0, 0, 1, 1, 1, 1])
        assert first == second
        assert -1 not in whole


def test_no_score_takes_more_than_there_is():
    rows = [(3_000, 20, 1, 370, 0), (0, 10, 2, 1000, 0), (5_000, 40, 0, 0, 0), (1, 1, 1, 1000, 1)]
    for score in SCORES:
        seed_chance(1)
        nodes, shapes = small_nodes(), shapes_of(*rows)
        arrivals = [0, 1, 2, 3] * 6
        placed = placed_by(score, nodes, shapes, arrivals)
        assert min(nodes.cpu.min(), nodes.memory.min(), nodes.milli.min()) >= 0
        taken = sum(
            shapes.devices[s] * shapes.milli[s]
            for s, node in zip(arrivals, placed, strict=True)
            if node >= 0
        )
        assert 5000 - nodes.milli.sum() == taken
