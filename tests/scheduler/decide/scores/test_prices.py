import numpy as np
import pytest

from scheduler.decide.scores.learnt import Setting, counts_of, next_estimate, terms_of
from scheduler.decide.scores.prices import gap_values, share_prices
from scheduler.decide.scores.state import Scale, Shapes, mix_of

SCALE = Scale(128_000, 8_000, 16_000.0, (8,), (128_000,), (8,))


def test_shares_that_always_waste_the_rest_cost_a_whole_device():
    assert share_prices({810: 5.0}) == pytest.approx({810: 1.0})


def test_shares_that_fill_a_device_cost_their_size():
    assert share_prices({500: 3.0, 1000: 2.0}) == pytest.approx({500: 0.5, 1000: 1.0})


def test_scarce_fillers_are_worth_a_gap_and_plentiful_ones_are_not_free():
    # 600 + 400 fill a device. Few 400s: they ride in gaps of 600s, which must be paid anyway.
    assert share_prices({600: 10.0, 400: 1.0}) == pytest.approx({600: 1.0, 400: 0.0})
    # Many 400s: two of them fill a device, and a 600 saves half of one.
    assert share_prices({600: 1.0, 400: 10.0}) == pytest.approx({600: 0.5, 400: 0.5})


def test_no_packing_of_a_device_is_worth_more_than_the_device():
    rng = np.random.default_rng(7)
    sizes = rng.choice(np.arange(1, 101), size=30, replace=False) * 10
    prices = share_prices({int(size): float(rng.integers(1, 50)) for size in sizes})
    values = gap_values(prices)
    assert values[-1] == pytest.approx(1.0)
    assert (np.diff(values) >= -1e-12).all()


def test_a_gap_is_worth_its_best_filling():
    values = gap_values({300: 0.3, 500: 0.6})
    assert values[[29, 30, 50, 80, 100]] == pytest.approx([0.0, 0.3, 0.6, 0.9, 1.2])


@pytest.mark.parametrize("demand", [{0: 1.0}, {1001: 1.0}, {500: 0.0}, {500: float("nan")}])
def test_sizes_and_amounts_out_of_range_are_refused(demand):
    with pytest.raises(ValueError, match="sizes must lie"):
        share_prices(demand)


def shapes(*more):
    rows = [[1000, 1, 0, 0, 0, 0], [2000, 1, 1, 500, 0, 1], [40000, 1, 8, 1000, 0, 5], *more]
    table = np.array(rows, dtype=np.int64)
    return Shapes(*(np.ascontiguousarray(table[:, k]) for k in range(6)))


def test_nothing_has_arrived_and_there_are_prices_still():
    mix, terms = terms_of(shapes(), np.zeros(3), Setting(), SCALE)
    assert len(mix.weight) == 0
    assert terms.gaps[100] == pytest.approx(1.0)
    assert not terms.block.any()


def test_a_block_of_eight_is_worth_its_part_of_demand_to_who_finds_cpu_enough():
    # 16 halves ask for 8 devices, one job of 8 for 8: half of demand comes in blocks of 8. It takes
    # 40 of 128 cores, which is step 40 of 128.
    mix, terms = terms_of(shapes(), np.array([5.0, 16.0, 1.0]), Setting(whole=0.3), SCALE)
    assert not terms.block[0, :2].any()
    assert not terms.block[0, 2, :40].any()
    assert terms.block[0, 2, 40:] == pytest.approx(0.3 * 8 * 0.5)
    assert mix.weight == pytest.approx([16 / 17, 1 / 17])


TWO_MODELS = SCALE._replace(models=(24, 8), model_cpu=(96_000, 128_000), model_devices=(8, 8))


def test_a_node_with_room_for_the_largest_jobs_is_worth_more_to_blocks():
    # 32 devices: 24 with 96 cores a node, 8 with 128. 16 devices are asked for, half a device for
    # each. A job of 8 devices and 40 cores spreads over all 32: a quarter each; one of 120 cores
    # over the 8: a whole one each. Relative to the mean of a half that is a half, and two.
    kinds = shapes([120_000, 1, 8, 1000, 0, 5])
    counts = np.array([0.0, 0.0, 1.0, 1.0])
    _, terms = terms_of(kinds, counts, Setting(whole=0.1), TWO_MODELS)
    assert terms.block[:, 2, 96] == pytest.approx([0.1 * 8 * 0.5, 0.1 * 8 * 0.5])
    assert terms.block[:, 2, 120] == pytest.approx([0.1 * 8 * 0.5, 0.1 * 8 * 2.5])


def test_a_model_is_scarce_whose_nodes_alone_are_large_enough():
    # As above: the 8 devices are asked for 2.5 times as much as the mean.
    kinds = shapes([120_000, 1, 8, 1000, 0, 5])
    counts = np.array([0.0, 0.0, 1.0, 1.0])
    _, terms = terms_of(kinds, counts, Setting(scarce=0.5), TWO_MODELS)
    assert terms.scarce == pytest.approx([0.0, 0.5 * np.sqrt(1.5)])


def test_a_job_that_is_too_large_for_every_node_asks_for_nothing():
    kinds = shapes([200_000, 1, 8, 1000, 0, 5], [1000, 1, 16, 1000, 0, 5])
    _, terms = terms_of(kinds, np.array([0.0, 0.0, 0.0, 1.0, 1.0]), Setting(), TWO_MODELS)
    assert not terms.block.any()
    assert not terms.scarce.any()


def test_the_mix_is_cut_where_the_cover_is_reached():
    assert mix_of(shapes(), np.array([6.0, 3.0, 1.0]), cover=0.9).weight == pytest.approx(
        [0.6, 0.3]
    )


def test_old_arrivals_count_less():
    counts = counts_of(np.array([0, 1, 1]), 3, half_life=1.0)
    assert counts == pytest.approx([0.25, 1.5, 0.0])


def test_estimates_grow_apart_up_to_a_limit():
    setting = Setting(first=50, growth=1.5, every=2000)
    assert [next_estimate(n, setting) for n in (0, 50, 100, 10_000)] == [50, 76, 151, 12_000]


def test_a_model_is_scarce_that_is_asked_for_more_than_the_mean():
    # 8 devices: 6 of model 0, 2 of model 1. Of 5 devices asked for 4 may be any, so half a device
    # for each of the 8; one must be of model 1, so half more for each of these. The mean is 5/8.
    scale = SCALE._replace(models=(6, 2), model_cpu=(64_000, 64_000), model_devices=(8, 8))
    kinds = shapes([1000, 1, 1, 1000, 0, 2], [1000, 1, 1, 1000, 0b10, 2])
    counts = np.array([0.0, 0.0, 0.0, 4.0, 1.0])
    _, terms = terms_of(kinds, counts, Setting(scarce=0.5), scale)
    assert terms.scarce == pytest.approx([0.0, 0.5 * np.sqrt(1.0 / 0.625 - 1.0)])


def test_where_nobody_names_a_model_none_is_scarce():
    _, terms = terms_of(shapes(), np.array([5.0, 16.0, 1.0]), Setting(), SCALE)
    assert terms.scarce == pytest.approx([0.0])
