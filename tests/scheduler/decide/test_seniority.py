"""Who of a tenant waits behind a higher class of it, for one of the same flavors."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.snapshot import JobSpec
from scheduler.decide.seniority import Seniority
from tests.builders import job

FLAVORS = ("a", "b", "c")


def test_only_a_higher_class_of_the_same_tenant_and_flavor_holds_back() -> None:
    seniority, low = Seniority(), job("low", tenant="t", priority=1)
    seniority.note(0, job("high", tenant="t", priority=2), ("a", "b"))
    seniority.note(1, job("other", tenant="u", priority=9), ("c",))
    assert seniority.is_behind(low, ("b", "c"))
    assert not seniority.is_behind(low, ("c",))
    assert not seniority.is_behind(low, ())
    assert not seniority.is_behind(job("even", tenant="t", priority=2), ("b",))


def test_jobs_without_devices_meet_each_other_only() -> None:
    seniority, low = Seniority(), job("low", tenant="t", priority=1)
    seniority.note(0, job("high", tenant="t", priority=2), ())
    assert seniority.is_behind(low, ())
    assert not seniority.is_behind(low, ("a",))


def test_who_is_held_back_is_told_when_the_last_that_did_has_had_its_turn() -> None:
    """first holds it back on a, second on b: when first is gone, second still does."""
    seniority = Seniority()
    first, second = job("first", tenant="t", priority=2), job("second", tenant="t", priority=3)
    seniority.note(0, first, ("a",))
    seniority.note(1, second, ("b",))
    seniority.note(2, job("low", tenant="t", priority=1), ("a", "b"))
    assert seniority.holds_back(2)
    seniority.had_turn(0)
    assert list(seniority.freed(first, ("a",))) == []
    assert seniority.holds_back(2)
    seniority.had_turn(1)
    assert list(seniority.freed(second, ("b",))) == [2]
    assert not seniority.holds_back(2)


_FLAVOR_SETS = st.sets(st.sampled_from(FLAVORS)).map(lambda some: tuple(sorted(some)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), _FLAVOR_SETS), min_size=1, max_size=12), st.data())
def test_whoever_goes_when_the_same_are_held_back_as_by_looking_at_all(
    asked: list[tuple[int, tuple[str, ...]]], data: st.DataObject
) -> None:
    seniority, left = Seniority(), dict[int, tuple[JobSpec, tuple[str, ...]]]()
    for g, (priority, flavors) in enumerate(asked):
        left[g] = job(f"j{g}", tenant="t", priority=priority), flavors
        seniority.note(g, *left[g])

    def held_back() -> set[int]:
        return {
            g
            for g, (low, flavors) in left.items()
            for high, others in left.values()
            if high.priority > low.priority and (set(flavors) & set(others) or flavors == others)
        }

    assert {g for g in left if seniority.holds_back(g)} == held_back()
    while left:
        before = held_back()
        g = data.draw(st.sampled_from(sorted(left)))
        gone = left.pop(g)
        seniority.had_turn(g)
        assert set(seniority.freed(*gone)) == before - held_back() - {g}
        assert {g for g in left if seniority.holds_back(g)} == held_back()
