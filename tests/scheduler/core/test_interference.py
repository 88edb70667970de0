"""Which classes never share a device."""

from scheduler.core.interference import foes_of


def test_a_pair_shares_only_where_each_runs_at_one_half_at_least() -> None:
    pairs = {
        ("a", "b"): (0.49, 0.9),  # a would have more by taking turns
        ("b", "c"): (1.0, 0.2),  # c would
        ("a", "c"): (0.5, 0.5),  # nobody loses
        ("c", "c"): (0.3, 0.3),
        ("b", "b"): (0.8, 0.7),
    }
    assert foes_of(pairs) == {frozenset("ab"), frozenset("bc"), frozenset("c")}
