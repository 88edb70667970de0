import numpy as np
import pytest

from scheduler.decide.scores.baselines import bestfit, dotprod, gpuclustering, gpupacking, tightest
from scheduler.decide.scores.fragmentation import fgd, fragmentation
from scheduler.decide.scores.potential import Terms, potential
from scheduler.decide.scores.state import Mix, Scale, scale_of

SCALE = Scale(128_000, 8_000, 16_000.0, (8,), (128_000,), (8,))


def row(*free):
    return np.array(free, dtype=np.int64)


def mix(*kinds):
    """Return a mix of (cpu, devices, milli, models, weight)."""
    columns = list(zip(*kinds, strict=True))
    cpu, devices, milli, models = (np.array(c, dtype=np.int64) for c in columns[:4])
    return Mix(cpu, devices, milli, models, np.array(columns[4], dtype=np.float64))


def test_bestfit_counts_what_is_left_of_cpu_and_devices_alike():
    # 0.5 * 32/128 + 0.5 * 4/8 = 0.375 left
    assert bestfit(32_000, 4_000, SCALE) == 62
    assert bestfit(0, 0, SCALE) == 100


def test_dotprod_prefers_nodes_with_little_of_what_the_job_takes():
    # (64/128 * 32/128 + 4/8 * 2/8) / 2 = 0.125
    assert dotprod(64_000, 4_000, 32_000, 2_000, SCALE) == 87
    assert dotprod(0, 0, 32_000, 2_000, SCALE) == 100


def test_gpupacking_prefers_shared_devices_then_used_nodes_then_free_nodes():
    assert gpupacking(row(400, 1000), 2, 1, 300) == 96  # 100 - 40 % / 10
    assert gpupacking(row(400, 1000, 1000), 3, 2, 1000) == 48
    assert gpupacking(row(1000, 1000), 2, 1, 300) == 31
    assert gpupacking(row(1000, 1000), 2, 0, 0) == 0


def test_gpuclustering_prefers_nodes_with_the_same_class_only():
    # the node is half full: 12 points on top of the class
    same, among, other, idle = (row(5, 0, 2), row(0, 1, 2), row(0, 1, 0), row(9, 0, 0))
    assert gpuclustering(same, 2, 4000, SCALE) == 75 + 12
    assert gpuclustering(among, 2, 4000, SCALE) == 50 + 12
    assert gpuclustering(other, 2, 4000, SCALE) == 12
    assert gpuclustering(idle, 2, 8000, SCALE) == 25


def test_the_tightest_device_that_holds_the_fraction_is_taken():
    assert tightest(row(900, 300, 400, 1000), 350) == 2
    assert tightest(row(100, 200), 300) == -1


def test_fragmentation_of_a_small_node_is_the_mean_of_what_each_kind_cannot_use():
    kinds = mix(
        (2_000, 1, 500, 0, 0.4),  # uses the 1000, not the 300: 300 lost
        (2_000, 2, 1000, 0, 0.2),  # two whole devices: nothing fits, 1300 lost
        (9_000, 1, 1000, 0, 0.1),  # too much CPU: 1300 lost
        (1_000, 1, 200, 2, 0.1),  # other model: 1300 lost
        (1_000, 0, 0, 0, 0.2),  # CPU-only: 1300 lost
    )
    assert fragmentation(8_000, row(1000, 300), 1, kinds) == pytest.approx(0.4 * 300 + 0.6 * 1300)


def test_a_full_node_has_no_fragmentation():
    assert fragmentation(8_000, row(0, 0), 1, mix((1, 1, 500, 0, 1.0))) == 0


def test_fgd_gives_half_where_nothing_changes_and_whole_numbers():
    assert fgd(700.0, 700.0) == 50
    assert fgd(1000.0, 0.0) == 73  # 100 / (1 + 1/e) = 73.1
    assert fgd(0.0, 1000.0) == 26


def terms(**changes):
    plain = Terms(
        gaps=np.linspace(0.0, 1.0, 101),
        curve=0.0,
        cpu_wanted=np.array([8_000.0, 0.0]),
        cpu_worth=np.array([0.0, 0.0]),
        fragment=0.0,
        cpu_curve=0.0,
        largest_cpu=128_000,
        scarce=np.zeros(3),
        block=np.zeros((2, 3, 129)),
    )
    return plain._replace(**changes)


def blocks(*, pair, four, cpu, model=0):
    """Return worths of blocks of 2 and 4 devices for jobs of so many cores; a step is one core."""
    worth = np.zeros((2, 3, 129))
    worth[model, 0, cpu:], worth[model, 1, cpu:] = pair, four
    return worth


NODE = (10_000, row(1000, 1000, 500, 0), 1, mix((1_000, 1, 1000, 0, 1.0)))
POTENTIALS = {
    "gaps alone": ({}, 2.5),
    "an empty device is worth more": ({"curve": 0.04}, 2.5 + 0.04 * 2.25),
    "2.5 devices want 20 cores, 10 are short": ({"cpu_worth": np.array([1e-5, 0.0])}, 2.4),
    "half a device is no use to whole ones": ({"fragment": 0.1}, 2.5 - 0.05),
    "CPU together": ({"cpu_curve": 1.0}, 2.5 + (10 / 128) ** 2),
    "two whole devices of a scarce model": ({"scarce": np.array([0.25, 0.9])}, 3.0),
    "one block of two": ({"block": blocks(pair=0.3, four=0.7, cpu=10)}, 2.8),
    "the block's CPU is missing": ({"block": blocks(pair=0.3, four=0.7, cpu=11)}, 2.5),
    "a block of a model that is not the node's": (
        {"block": blocks(pair=0.3, four=0.7, cpu=10, model=1)},
        2.5,
    ),
}


@pytest.mark.parametrize(("changes", "worth"), POTENTIALS.values(), ids=POTENTIALS)
def test_the_potential_of_a_node_is_the_sum_of_its_terms(changes, worth):
    assert potential(*NODE, terms(**changes)) == pytest.approx(worth)


def test_four_free_devices_are_as_many_pairs_as_find_cpu():
    # Two pairs of 8 cores each and one four of 16 need 16 cores; with 15 there is one pair alone.
    worth = blocks(pair=0.3, four=0.7, cpu=8)
    worth[0, 1, :16] = 0.0
    four, none = row(1000, 1000, 1000, 1000), mix((1_000, 1, 1000, 0, 1.0))
    assert potential(16_000, four, 1, none, terms(block=worth)) == pytest.approx(4 + 0.6 + 0.7)
    assert potential(15_999, four, 1, none, terms(block=worth)) == pytest.approx(4 + 0.3)


def test_of_a_node_with_several_models_the_dearest_counts():
    worth = blocks(pair=0.3, four=0.0, cpu=0) + blocks(pair=0.4, four=0.0, cpu=0, model=1)
    two, none = row(1000, 1000), mix((1_000, 1, 1000, 0, 1.0))
    assert potential(10_000, two, 0b11, none, terms(block=worth)) == pytest.approx(2.4)


def test_scores_are_relative_to_the_largest_node_and_to_the_cpu_per_device():
    # 96 cores for 6 devices; a fleet without devices is treated as if it had one
    two = scale_of(row(64_000, 32_000), row(4, 2), row(0, 6), row(0b10, 0b10))
    assert two == Scale(64_000, 4_000, 16_000.0, (0, 6), (0, 64_000), (0, 4))
    bare = scale_of(row(64_000), row(0), row(), row(0))
    assert bare == Scale(64_000, 1_000, 64_000.0, (), (), ())
    assert scale_of(row(), row(), row(), row()) == Scale(1_000, 1_000, 1_000.0, (), (), ())


def test_the_largest_node_of_each_model_is_known():
    # The node of both models, of 32 cores and 2 devices, is the largest of model 1.
    found = scale_of(row(64_000, 32_000), row(4, 2), row(4, 2), row(0b01, 0b11))
    assert (found.model_cpu, found.model_devices) == ((64_000, 32_000), (4, 2))
