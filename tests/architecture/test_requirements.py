"""Every package that is asked for has a version that was tried, within what is asked for."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
FILES = ["requirements.txt", "requirements-dev.txt", "requirements-benchmarks.txt"]


def lines(name: str) -> list[Requirement]:
    texts = [line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    return [Requirement(text) for text in texts if text and not text.startswith("-r ")]


@pytest.mark.parametrize("name", FILES)
def test_what_is_asked_for_has_a_version_that_was_tried(name: str) -> None:
    tried = {canonicalize_name(one.name): one for one in lines("constraints.txt")}
    asked = lines(name)
    assert asked
    for one in asked:
        (exact,) = tried[canonicalize_name(one.name)].specifier
        assert exact.operator == "=="
        assert one.specifier.contains(exact.version), f"{one} against {exact}"
