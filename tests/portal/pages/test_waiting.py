"""The numbers behind a waiting reason read as words and amounts, in either language."""

import ast
from pathlib import Path

import pytest
from django.utils import translation

from portal.pages import waiting
from portal.pages.waiting import evidence_rows

ENGINE = Path(__file__).resolve().parents[3] / "scheduler/decide"
SAID_BY_FUNCTIONS = {
    "explain.py": ("quota_evidence", "free_evidence", "unavailable_evidence"),
    "admission.py": ("refusal", "_never", "never_fits_evidence", "quota_ever_evidence", "asked"),
    "eta.py": ("_told",),
}


def keys_of_the_engine() -> set[str]:
    return {
        str(key.value)
        for name, functions in SAID_BY_FUNCTIONS.items()
        for function in ast.walk(ast.parse((ENGINE / name).read_text("utf-8")))
        if isinstance(function, ast.FunctionDef) and function.name in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    }


def test_every_number_of_the_engine_has_a_name() -> None:
    keys = keys_of_the_engine()
    assert {"asked", "largest_block", "expected_start_basis", "mistake"} <= keys
    assert keys - set(waiting._NAMES) - waiting._UNSAID == set()


def test_the_numbers_come_in_the_order_of_reading_and_without_what_was_not_asked_for() -> None:
    asked = {"devices": 8, "replicas": 2, "cpu_milli": 64000, "gpu_milli": 1000}
    found = evidence_rows(
        {
            "expected_start_basis": "plan",
            "missing_milli": 5250,
            "flavor": "nvidia-a100-80gb",
            "asked_milli": 16000,
            "nominal_milli": 7000,
            "asked": asked | {"memory_mib": 524288, "gpu_memory_mib": 0},
        }
    )
    assert found == [
        ("asks for", "2 × (64 cores, 512 GiB, 8 devices)"),
        ("flavor", "NVIDIA A100 SXM (80 GB)"),
        ("owned", "7"),
        ("asked", "16"),
        ("missing", "5.25"),
        ("start expected from", "the plan of the queue"),
    ]


def test_the_cpu_flavor_is_counted_in_cores() -> None:
    assert evidence_rows({"flavor": "cpu", "used_milli": 1500})[1] == ("used", "1.5 cores")


def test_nodes_that_may_not_be_used_are_counted_by_why() -> None:
    found = evidence_rows({"unavailable_nodes": {"cordoned": 2, "unknown": 1}})
    assert found == [
        ("nodes not available · cordoned", "2"),
        ("nodes not available · unreachable", "1"),
    ]


@pytest.mark.parametrize(
    ("language", "text"), [("en", "the pace of those ahead"), ("zh-hans", "前面作业的推进速度")]
)
def test_the_basis_of_an_expected_start_is_said_in_words(language: str, text: str) -> None:
    with translation.override(language):
        assert evidence_rows({"expected_start_basis": "rate"})[0][1] == text


def test_a_moment_of_the_engine_is_not_shown_as_a_duration() -> None:
    assert evidence_rows({"not_before_s": 1.8e9}) == []
