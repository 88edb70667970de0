import pytest

from scheduler.simulate.usage import HALF_LIFE_S, RATIO_COUNT, DecayedUsage, RuntimeRatios
from tests.builders import FleetBuilder

FLEET = FleetBuilder().node("n", cpu=8, devices=4, flavor="a100").build()


def test_half_of_the_fleet_for_one_half_life_counts_a_quarter() -> None:
    # 2 of 4 devices over the last half-life: 1/2 * (0.5^0 - 0.5^1) = 0.25, half of it later
    usage = DecayedUsage(FLEET, {}, now_s=0.0)
    usage.book("t", "a100", 2000, 0.0, now_s=HALF_LIFE_S)
    assert usage.now(HALF_LIFE_S) == {"t": pytest.approx(0.25)}
    assert usage.now(2 * HALF_LIFE_S) == {"t": pytest.approx(0.125)}


def test_bookings_add_up_and_the_most_used_flavor_counts() -> None:
    # a100: 1/4 * 1/2, then halved, plus the same again: 3/16; cpu: 8 of 8 cores for as long: 1/2
    usage = DecayedUsage(FLEET, {}, now_s=0.0)
    usage.book("t", "a100", 1000, 0.0, now_s=HALF_LIFE_S)
    usage.book("t", "a100", 1000, HALF_LIFE_S, now_s=2 * HALF_LIFE_S)
    assert usage.now(2 * HALF_LIFE_S) == {"t": pytest.approx(3 / 16)}
    usage.book("t", "cpu", 8000, HALF_LIFE_S, now_s=2 * HALF_LIFE_S)
    assert usage.now(2 * HALF_LIFE_S) == {"t": pytest.approx(0.5)}


def test_what_was_used_before_the_begin_decays_too() -> None:
    usage = DecayedUsage(FLEET, {"t": 0.8}, now_s=0.0)
    assert usage.now(2 * HALF_LIFE_S) == {"t": pytest.approx(0.2)}


def test_use_before_the_begin_adds_to_use_of_the_same_flavor_behind_it() -> None:
    # the whole fleet for two half-lives: 1/2 + 1/4; begun in the middle it is the same
    usage = DecayedUsage(FLEET, {"t": 0.5}, now_s=0.0, past_use={("t", "a100"): 0.5})
    usage.book("t", "a100", 4000, 0.0, now_s=HALF_LIFE_S)
    assert usage.now(HALF_LIFE_S) == {"t": pytest.approx(0.75)}


def test_use_before_the_begin_does_not_add_to_use_of_another_flavor() -> None:
    # cpu: 0.5 / 2; a100: 0.1 / 2 and 2 of 4 devices for a half-life: 0.3; the most is 0.3
    past_use = {("t", "cpu"): 0.5, ("t", "a100"): 0.1}
    usage = DecayedUsage(FLEET, {"t": 0.5}, now_s=0.0, past_use=past_use)
    usage.book("t", "a100", 2000, 0.0, now_s=HALF_LIFE_S)
    assert usage.now(HALF_LIFE_S) == {"t": pytest.approx(0.3)}


def test_where_the_flavor_of_past_use_is_not_known_it_may_have_been_any() -> None:
    # as if it had been the a100: 0.5 / 2 + 1/2; who has used nothing since only has what is left
    usage = DecayedUsage(FLEET, {"t": 0.5, "u": 0.5}, now_s=0.0)
    usage.book("t", "a100", 4000, 0.0, now_s=HALF_LIFE_S)
    assert usage.now(HALF_LIFE_S) == {"t": pytest.approx(0.75), "u": pytest.approx(0.25)}


def test_thousand_half_lives_later_the_numbers_still_hold() -> None:
    usage = DecayedUsage(FLEET, {"t": 0.8}, now_s=0.0)
    for lives in range(1, 1101):
        usage.book("t", "a100", 4000, (lives - 1) * HALF_LIFE_S, now_s=lives * HALF_LIFE_S)
    # the whole fleet for ever: 1/2 + 1/4 + ... = 1
    assert usage.now(1100 * HALF_LIFE_S) == {"t": pytest.approx(1.0)}


def test_flavor_that_the_fleet_does_not_have_is_not_counted() -> None:
    usage = DecayedUsage(FLEET, {}, now_s=0.0)
    usage.book("t", "", 0, 0.0, now_s=10.0)
    usage.book("t", "k80", 1000, 0.0, now_s=10.0)
    assert usage.now(10.0) == {}


def test_last_runtimes_are_kept_ascending_and_capped() -> None:
    ratios = RuntimeRatios((0.2, 0.9))
    ratios.add(50.0, 100.0)
    ratios.add(130.0, 100.0)  # the grace of a stop is no runtime
    assert ratios.now() == (0.2, 0.5, 0.9, 1.0)


def test_ratios_of_before_the_begin_are_forgotten_evenly_as_nobody_knows_their_age() -> None:
    # 0.005 to 1; when half of them are forgotten, half of those that are left are above 0.5
    ratios = RuntimeRatios(tuple(k / RATIO_COUNT for k in range(1, RATIO_COUNT + 1)))
    for _ in range(RATIO_COUNT // 2):
        ratios.add(0.0, 100.0)
    left = [ratio for ratio in ratios.now() if ratio > 0]
    assert len(left) == RATIO_COUNT // 2
    assert sum(ratio > 0.5 for ratio in left) == pytest.approx(len(left) / 2, abs=2)
    assert (min(left) < 0.05, max(left) > 0.95) == (True, True)


def test_only_so_many_runtimes_are_kept() -> None:
    ratios = RuntimeRatios(())
    for k in range(RATIO_COUNT + 50):
        ratios.add(float(k), 1000.0)
    kept = ratios.now()
    assert len(kept) == RATIO_COUNT
    assert (kept[0], kept[-1]) == (0.05, 0.249)  # the first 50 are forgotten
