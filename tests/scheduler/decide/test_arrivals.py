from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import DemandKind
from scheduler.decide.arrivals import HALF_LIFE, MOST_ARRIVALS, Arrival, demand_mix

ONE, TWO = ReplicaShape(1000, 64, 1), ReplicaShape(1000, 64, 2)


def test_an_arrival_counts_half_after_a_thousand_others_and_by_its_replicas() -> None:
    # ages 0, ..., 1000: the oldest, of three replicas, counts 3 / 2
    newer = [Arrival(TWO, (), 1)] * int(HALF_LIFE)
    oldest, _ = demand_mix([*newer, Arrival(ONE, (), 3)])
    assert oldest == DemandKind(ONE, (), 1.5)


def test_kinds_differ_by_shape_and_flavors_and_stand_in_a_stable_order() -> None:
    arrivals = [Arrival(TWO, (), 1), Arrival(ONE, ("v100",), 1), Arrival(ONE, (), 1)]
    found = [(kind.shape, kind.flavors) for kind in demand_mix(arrivals)]
    assert found == [(ONE, ()), (ONE, ("v100",)), (TWO, ())]


def test_an_earlier_mix_fades_with_each_arrival_and_is_forgotten_with_the_last_of_them() -> None:
    # 2 replicas of before count 2 * 0.5^1 after 1000 arrivals, and nothing after 4000
    earlier = (DemandKind(ONE, (), 2.0),)
    assert demand_mix([], earlier) == earlier
    assert demand_mix([], earlier, since=int(HALF_LIFE)) == (DemandKind(ONE, (), 1.0),)
    assert demand_mix([], earlier, since=MOST_ARRIVALS - 1) != ()
    assert demand_mix([], earlier, since=MOST_ARRIVALS) == ()
