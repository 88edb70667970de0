import numpy as np

from benchmarks.packing_placer import nothing_kept, value_all
from benchmarks.packing_window import arrive, drain, empty_window
from tests.benchmarks.test_packing_moves import nodes_of, scoring_of
from tests.benchmarks.test_packing_placer import shapes_of


def placed_by(nodes, shapes, arrivals, *, span, patience):
    scoring, kept = scoring_of(nodes, shapes), nothing_kept(len(shapes.cpu), len(nodes.cpu))
    value_all(scoring, kept)
    arrivals = np.array(arrivals, dtype=np.int64)
    window = empty_window(arrivals, len(shapes.cpu), span=span, patience=patience)
    for job in range(len(arrivals)):
        arrive(scoring, kept, window, job)
    drain(scoring, kept, window)
    return window.placed.tolist()


def test_the_best_score_for_each_device_goes_first():
    # On one device with ten cores, best fit gives the whole job 100 - 45 = 55 and the half one
    # 100 - 45 - 25 = 30, which is 60 for each device: the half goes first, the whole finds no room.
    shapes = shapes_of((1_000, 1, 1, 1000, 0), (1_000, 1, 1, 500, 0))
    assert placed_by(nodes_of([1000, 0]), shapes, [0, 1], span=2, patience=9) == [-1, 0]


def test_a_window_of_one_is_the_order_of_arrival():
    shapes = shapes_of((1_000, 1, 1, 1000, 0), (1_000, 1, 1, 500, 0))
    assert placed_by(nodes_of([1000, 0]), shapes, [0, 1], span=1, patience=9) == [0, -1]


def test_who_has_waited_for_long_enough_goes_first():
    shapes = shapes_of((1_000, 1, 1, 1000, 0), (1_000, 1, 1, 500, 0))
    assert placed_by(nodes_of([1000, 0]), shapes, [0, 1], span=2, patience=1) == [0, -1]


def test_everybody_who_fits_is_placed_in_the_end():
    shapes = shapes_of((1_000, 1, 1, 300, 0), (1_000, 1, 0, 0, 0), (90_000, 1, 0, 0, 0))
    found = placed_by(nodes_of([1000, 0]), shapes, [0, 1, 0, 2, 0, 0], span=4, patience=9)
    assert found == [0, 0, 0, -1, 0, -1]  # three times 300 fit, and 90 cores never do
