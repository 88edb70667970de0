import json
import subprocess
import sys

import pytest

from benchmarks.bands import in_bands_highs
from benchmarks.cycle import main
from benchmarks.joint import Joint
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, tenant, world

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
    for reference in (result["reference_joint"], result["reference_in_bands"]):
        assert reference["bound"] >= result["objective"] - 1e-9
        assert reference["gap_pct"] < 2.0


def one_of_the_high_class_or_two_of_the_low() -> Snapshot:
    """Two devices. The high job wants both, each of the low ones, of two other tenants, one."""
    jobs = [
        job("high", tenant="a", devices=2, cpu=2, priority=1, submitted_s=NOW_S - 60),
        job("low-1", tenant="b", devices=1, submitted_s=NOW_S - 60),
        job("low-2", tenant="c", devices=1, submitted_s=NOW_S - 60),
    ]
    tenants = [tenant(slug, a100=2) for slug in ("a", "b", "c")]
    return world(FleetBuilder().node("n", devices=2), jobs, tenants=tenants)


def test_the_reference_in_bands_keeps_the_order_of_the_queue_and_the_joint_one_does_not() -> None:
    """By the order the high one starts. Starting both low ones holds the same devices and cores.

    Then two of three jobs run instead of one, and two of three tenants hold their fair share (what
    they ask for) instead of one. With the floor of 0.01 in every logarithm that is more by
    ln(.676667 / .343333) + (ln 1.01 - ln .01) / 3 = .678477 + 1.538374.
    """
    snapshot, policy = one_of_the_high_class_or_two_of_the_low(), Policy(strategy="optimising")
    objective = Objective(Turns(snapshot, policy, now_s=NOW_S))
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert [start.uid for start in plan.starts] == ["high"]
    ours = objective.value(objective.after(plan.starts))
    in_bands, joint = in_bands_highs(snapshot, policy, 5.0), Joint(snapshot, policy).highs(5.0)
    assert in_bands["objective"] == pytest.approx(ours)
    assert ours <= in_bands["bound"] < ours + 0.01
    assert joint["objective"] - ours == pytest.approx(2.216851, abs=1e-6)


def test_a_reference_says_that_no_bound_is_known_where_there_was_no_time() -> None:
    snapshot, policy = one_of_the_high_class_or_two_of_the_low(), Policy(strategy="optimising")
    found = in_bands_highs(snapshot, policy, 0.0)
    assert (found["bound"], found["bands"]) == (None, 2)


def test_no_time_at_all_is_a_mistake_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--nodes", "6", "--pending", "8", "--budget", "0"])
    assert ended.value.code == 2
    assert "'0' is not a number above 0" in capsys.readouterr().err.splitlines()[-1]


def test_the_other_solver_gets_the_same_program(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ortools")
    size = ["--nodes", "6", "--pending", "8", "--policy", "optimising", "--one-class"]
    main([*size, "--reference", "5", "--cpsat", "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["cp_sat"]["bound"] >= result["reference_joint"]["objective"] - 0.001
    assert result["cp_sat"]["objective"] <= result["reference_joint"]["bound"] + 0.001


def test_without_the_other_solver_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(SystemExit, match=r"requirements-benchmarks\.txt"):
        main(["--nodes", "6", "--pending", "8", "--policy", "rules", "--cpsat", "--json"])
