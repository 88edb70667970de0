"""Which GPUs are in one NVLink island."""

import pytest

from telemetry.sense.nvml_links import islands

OWN = {0: "a", 1: "b", 2: "c", 3: "d"}
CASES: dict[str, tuple[dict[int, set[str]], dict[int, int]]] = {
    "nothing is linked": ({}, {}),
    "two pairs": (
        {0: {"b"}, 1: {"a"}, 2: {"d"}, 3: {"c"}},
        {0: 0, 1: 0, 2: 1, 3: 1},
    ),
    "a chain is one island": ({0: {"b"}, 1: {"a", "c"}, 2: {"b"}}, {0: 0, 1: 0, 2: 0}),
    "a switch joins all": ({index: {"s"} for index in OWN}, {0: 0, 1: 0, 2: 0, 3: 0}),
    "a later link joins two earlier islands": (
        {0: {"x"}, 1: {"y"}, 2: {"x", "y"}},
        {0: 0, 1: 0, 2: 0},
    ),
    "islands count by their smallest index": (
        {0: {"d"}, 3: {"a"}, 1: {"c"}, 2: {"b"}},
        {0: 0, 3: 0, 1: 1, 2: 1},
    ),
}


@pytest.mark.parametrize(("links", "expected"), CASES.values(), ids=CASES.keys())
def test_islands(links: dict[int, set[str]], expected: dict[int, int]) -> None:
    remotes = {index: frozenset(links.get(index, ())) for index in OWN}
    assert islands(OWN, remotes) == expected
