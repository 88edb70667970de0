import json
import subprocess
import sys

import pytest

from benchmarks.cycle import main

KEYS = {
    "cycle_s",
    "placements",
    "placements_per_s",
    "objective",
    "objective_rules",
    "gap_pct",
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
    assert result["baseline"]["first_fit"].keys() >= {"cycle_s", "placements", "objective"}


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
