import json
import subprocess
import sys

import pytest

from benchmarks.cycle import main

KEYS = {
    "cycle_s",
    "placements",
    "placements_per_s",
    "decision_p50_ms",
    "decision_p99_ms",
    "idle_cycle_ms",
    "idle_cycle_anew_ms",
    "objective",
    "objective_rules",
    "gap_pct",
    "late_pct",
    "status",
    "baseline",
    "nodes",
    "pending",
    "policy",
    "seed",
    "peak_rss_mib",
    "machine",
}


@pytest.mark.parametrize("policy", ["rules", "optimising"])
def test_the_last_line_is_one_object_with_the_agreed_keys(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--nodes", "12", "--pending", "20", "--policy", policy, "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result.keys() >= KEYS
    assert result["placements"] > 0
    assert result["idle_carried_over"]
    assert result["baseline"]["first_fit"].keys() >= {"cycle_s", "placements", "objective"}


def test_where_everything_is_lent_its_owners_get_some_of_it_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--nodes", "12", "--pending", "20", "--lent", "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 < result["made_room_for"] <= 8  # `MOST_ROOMS`
    assert result["evictions"] >= result["made_room_for"]


def test_one_seed_is_one_world(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for _ in range(2):
        main(["--nodes", "12", "--pending", "20", "--seed", "7", "--json"])
        found.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert found[0]["objective"] == found[1]["objective"]


def test_what_the_solver_prints_of_itself_comes_before_the_last_line() -> None:
    """HiGHS prints its version on the process's own standard output, past Python."""
    size = ["--nodes", "30", "--pending", "120"]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.cycle", *size, "--policy", "optimising", "--json"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    result = json.loads(ended.stdout.splitlines()[-1])
    assert result["answered_by"] == "optimising"


def test_a_long_solve_bounds_every_plan(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--nodes", "12", "--pending", "20", "--policy", "optimising", "--one-class"]
    main([*size, "--reference", "5", "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["reference"]["bound"] >= result["objective"] - 1e-9
    assert result["reference"]["gap_pct"] < 2.0


def test_the_other_solver_gets_the_same_program(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ortools")
    size = ["--nodes", "6", "--pending", "8", "--policy", "optimising", "--one-class"]
    main([*size, "--reference", "5", "--cpsat", "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["cp_sat"]["bound"] >= result["reference"]["objective"] - 0.001
    assert result["cp_sat"]["objective"] <= result["reference"]["bound"] + 0.001


def test_without_the_other_solver_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(SystemExit, match=r"requirements-benchmarks\.txt"):
        main(["--nodes", "6", "--pending", "8", "--policy", "rules", "--cpsat", "--json"])
