"""Sets of losers in the order of their price."""

from itertools import combinations, islice

from scheduler.decide.preemption.subsets import by_price


def test_sets_come_by_highest_level_then_by_work() -> None:
    """Level 0: b 1, a 3, both 4. Then whatever holds c, of level 1: alone, with b, with a, all."""
    found = list(by_price([0, 0, 1], [3.0, 1.0, 2.0], most=100))
    assert found == [(1,), (0,), (0, 1), (2,), (1, 2), (0, 2), (0, 1, 2)]


def test_every_set_comes_once_and_never_after_a_dearer_one() -> None:
    levels, works = [0, 2, 0, 1, 1], [5.0, 0.0, 5.0, 0.0, 7.0]
    found = list(by_price(levels, works, most=1000))
    prices = [(max(levels[i] for i in some), sum(works[i] for i in some)) for some in found]
    every = {some for n in range(1, 6) for some in combinations(range(5), n)}
    assert set(found) == every
    assert len(found) == 31
    assert prices == sorted(prices)


def test_so_many_sets_are_looked_at_and_no_more() -> None:
    assert len(list(by_price([0] * 60, [1.0] * 60, most=50))) == 50
    assert list(by_price([], [], most=50)) == []


def test_the_first_of_very_many_sets_come_at_once() -> None:
    """Of 2^60 sets the cheapest are the single ones with nothing to lose."""
    works = [0.0, 0.0, *([1.0] * 58)]
    assert list(islice(by_price([0] * 60, works, most=9), 3)) == [(0,), (1,), (0, 1)]
