import csv
import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import snapshots
from scheduler.execute.base import Phase
from scheduler.models import SchedulingPolicy
from scheduler.simulate.traces.exported import read_trace
from tests.scheduler.test_replays import two_jobs_one_after_the_other
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


def play(world: World, *arguments: str, days: float = 1.0) -> str:
    output = StringIO()
    window = ("--until", world.now.isoformat(), "--days", str(days))
    call_command("replay", *arguments, *window, stdout=output, stderr=StringIO())
    return output.getvalue()


def test_what_was_stands_beside_what_might_have_been() -> None:
    world = World()
    two_jobs_one_after_the_other(world)
    told = json.loads(play(world, "--policy", "present,fifo", "--json", "-"))
    assert (told["cluster"], told["jobs"]) == ("c", 2)
    assert [(run["policy"], run["simulated"]) for run in told["runs"]] == [
        ("recorded", False),
        ("present", True),
        ("fifo", True),
    ]
    # recorded: waits of 1 and 600 s; played, a starts at once and b 600 s after that
    assert told["runs"][0]["wait_s"]["mean"] == 300.5
    assert told["runs"][1]["wait_s"]["mean"] == 299.5
    assert "simulation" in told["note"]


def test_all_runs_are_over_the_same_hour_also_where_a_job_runs_on_for_a_month() -> None:
    """Two devices: a holds one for 30 days, b the other for an hour, which is the window.

    So both are held all the time, in fact and under the same policy, and only b has ended.
    """
    world = World()
    for name, limit_s in (("a", 30 * 86400), ("b", 7200)):
        job = world.submit(name, devices=1, time_limit_s=limit_s)
        world.cycle()
        world.says(job, Phase.RUNNING)
        world.cycle(after_s=0.0)
    world.now += timedelta(hours=1)
    world.says(job, Phase.SUCCEEDED)
    world.cycle(after_s=0.0)
    told = json.loads(play(world, "--json", "-", days=1 / 24))
    seen = [
        (run["days"], run["rates_days"], run["allocated_pct"], run["tenants"]["t"]["device_h"])
        for run in told["runs"]
    ]
    assert seen == [(0.04167, 0.04167, 100.0, 2.0)] * 2
    table = play(world, days=1 / 24)
    assert "2 jobs, 1 had not ended; rates" in table
    assert "over the first 0.04167 days." in table


def test_job_that_would_end_after_the_window_has_not_ended() -> None:
    """Both devices each: a runs 600 s, and b after it, 200 s until the window ends and 100 more."""
    world = World()
    two_jobs_one_after_the_other(world)
    world.now -= timedelta(seconds=100)
    told = json.loads(play(world, "--policy", "fifo", "--json", "-"))
    seen = [(run["jobs"]["completed"], run["jobs"]["running"]) for run in told["runs"]]
    assert seen == [(1, 1), (1, 1)]


def test_replay_writes_nothing_to_the_database() -> None:
    world = World()
    two_jobs_one_after_the_other(world)
    with CaptureQueriesContext(connection) as queries:
        play(world, "c", "--policy", "rules")
    verbs = {query["sql"].lstrip("(").split()[0].upper() for query in queries}
    assert verbs <= {"SELECT", "SAVEPOINT", "RELEASE", "SET", "WITH"}


def test_exported_trace_is_read_back_and_played_alike(tmp_path: Path) -> None:
    world = World()
    two_jobs_one_after_the_other(world)
    path, rows = tmp_path / "site.jsonl", tmp_path / "jobs.csv"
    play(world, "--policy", "fifo", "--export", str(path), "--csv", str(rows))
    trace = read_trace(path.read_text(encoding="utf-8").splitlines(), str(path))
    assert sorted(job.work for job in trace.jobs) == [300.0, 600.0]
    output = StringIO()
    call_command("simulate", str(path), "--policy", "fifo", "--csv", "-", stdout=output)
    again = list(csv.DictReader(output.getvalue().splitlines()))
    before = [row for row in csv.DictReader(rows.read_text().splitlines()) if row["run"] == "fifo"]
    assert again == before


def test_exported_trace_is_played_under_the_policy_that_it_carries(tmp_path: Path) -> None:
    """The policy of the site, as it is; --set changes what is played, not what is kept."""
    world = World()
    two_jobs_one_after_the_other(world)
    SchedulingPolicy.objects.update_or_create(
        cluster=world.cluster, defaults={"placement": "prices", "preempt_grace_s": 7.0}
    )
    path, rows = tmp_path / "site.jsonl", tmp_path / "jobs.csv"
    play(world, "--export", str(path), "--csv", str(rows), "--set", "placement=spread")
    trace = read_trace(path.read_text(encoding="utf-8").splitlines(), str(path))
    assert trace.policy == snapshots.policy_of(world.cluster)
    assert trace.policy.placement == "prices"
    output = StringIO()
    call_command("simulate", str(path), "--csv", "-", "--set", "placement=spread", stdout=output)
    again = list(csv.DictReader(output.getvalue().splitlines()))
    before = list(csv.DictReader(rows.read_text().splitlines()))
    assert again == [row for row in before if row["run"] == "present"]


def test_export_and_answers_are_files_of_their_own(tmp_path: Path) -> None:
    world, path = World(), str(tmp_path / "site")
    for option in ("--json", "--csv"):
        with pytest.raises(CommandError, match="site is to hold two answers"):
            play(world, "--export", path, option, path)


def test_the_only_cluster_need_not_be_named_and_an_unknown_one_is() -> None:
    world = World()
    assert "recorded" in play(world, "--policy", "fifo")
    with pytest.raises(CommandError, match=r"no cluster 'x'; there are: c\."):
        play(world, "x")


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "many", "1e9"])
def test_days_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(CommandError, match=r"--days: .* is not a number above 0 to 3660"):
        call_command("replay", "c", "--days", wrong)


@pytest.mark.parametrize("wrong", ["yesterday", "2026-13-01", "9999-01-01"])
def test_an_end_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(CommandError, match=wrong):
        call_command("replay", "c", "--until", wrong)


def test_a_cluster_on_which_nothing_ran_has_empty_figures() -> None:
    world = World()
    world.now += timedelta(days=1)
    told = json.loads(play(world, "--policy", "rules", "--json", "-"))
    assert told["jobs"] == 0
    assert all(run["wait_s"]["mean"] is None for run in told["runs"])


def test_jobs_that_failed_are_told_apart() -> None:
    world = World()
    job = world.submit("a", devices=1)
    world.cycle()
    world.says(job, Phase.FAILED, exit_code=1)
    world.cycle()
    told = json.loads(play(world, "--policy", "fifo", "--json", "-"))
    assert told["runs"][0]["jobs"]["failed"] == 1
