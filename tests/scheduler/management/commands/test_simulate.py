import csv
import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from scheduler.simulate.synthetic import Site, synthetic
from scheduler.simulate.traces.exported import write_trace


def play(*arguments: str) -> tuple[str, str]:
    output, progress = StringIO(), StringIO()
    call_command("simulate", *arguments, stdout=output, stderr=progress)
    return output.getvalue(), progress.getvalue()


SMALL = ("--nodes", "1", "--tenants", "2", "--days", "0.3")


def test_an_invented_site_is_compared_without_a_database() -> None:
    said, _ = play(*SMALL, "--policy", "rules,fifo")
    assert said.startswith("Figures of a simulation")
    assert [line.split()[0] for line in said.splitlines()[3:]] == ["rules", "fifo"]


def test_json_holds_every_run_and_says_that_it_is_a_simulation() -> None:
    said, _ = play(*SMALL, "--policy", "rules,priority_only", "--json", "-")
    told = json.loads(said)
    assert "simulation" in told["note"]
    assert [run["policy"] for run in told["runs"]] == ["rules", "priority_only"]
    for run in told["runs"]:
        assert run["simulated"] is True
        assert sum(run["jobs"].values()) == told["jobs"] > 0
        assert 0 < run["utilised_pct"] <= run["allocated_pct"] <= 100


def test_csv_holds_one_row_for_each_job_and_run(tmp_path: Path) -> None:
    rows_at, told_at = tmp_path / "jobs.csv", tmp_path / "told.json"
    play(*SMALL, "--policy", "fifo,priority_only", "--csv", str(rows_at), "--json", str(told_at))
    rows = list(csv.DictReader(rows_at.read_text(encoding="utf-8").splitlines()))
    told = json.loads(told_at.read_text(encoding="utf-8"))
    assert len(rows) == 2 * told["jobs"]
    assert {row["run"] for row in rows} == {"fifo", "priority_only"}
    first = rows[0]
    assert float(first["first_start_s"]) - float(first["submitted_s"]) == float(first["wait_s"])


def test_same_seed_same_answer() -> None:
    first, second = (play(*SMALL, "--policy", "fifo", "--csv", "-", "--seed", "7") for _ in "ab")
    assert first == second
    assert play(*SMALL, "--policy", "fifo", "--csv", "-", "--seed", "8") != first


def test_a_file_of_our_own_format_is_played(tmp_path: Path) -> None:
    path = tmp_path / "site.jsonl"
    trace = synthetic(Site(nodes=1, tenants=1, days=2.0), np.random.default_rng(1))
    path.write_text("\n".join(write_trace(trace)), encoding="utf-8")
    said, _ = play(str(path), "--policy", "fifo", "--json", "-")
    assert json.loads(said)["jobs"] == len(trace.jobs) > 0


def test_progress_is_told_apart_from_the_answer(monkeypatch) -> None:
    monkeypatch.setattr("scheduler.management.comparison.PROGRESS_S", 0.0)
    said, progress = play(*SMALL, "--policy", "fifo", "--json", "-")
    json.loads(said)
    assert "fifo: " in progress
    assert "% of the arrivals" in progress


def test_settings_of_the_policy_change_what_comes_out() -> None:
    plain, _ = play(*SMALL, "--nodes", "3", "--policy", "rules", "--csv", "-", "--load", "3")
    moved, _ = play(
        *SMALL,
        "--nodes",
        "3",
        "--policy",
        "rules",
        "--csv",
        "-",
        "--load",
        "3",
        "--set",
        "placement=spread",
    )
    assert plain != moved


HEAD = """
{"record": "trace", "version": 2, "cluster": "c1", "begin_s": 0}
{"record": "flavor", "name": "a100", "memory_mib": 81920}
{"record": "node", "name": "n", "cpu_milli": 9, "memory_mib": 9, "devices": ["a100", "a100"]}
{"record": "tenant", "slug": "t"}
"""


def a_job(uid: str, at_s: float, work_s: float, **more: object) -> str:
    values = {"uid": uid, "tenant": "t", "cpu_milli": 1, "memory_mib": 1, "devices": 1}
    values |= {"submitted_s": at_s, "work": work_s, "time_limit_s": 10 * work_s}
    return json.dumps({"record": "job"} | values | more) + "\n"


def test_rates_are_of_the_time_until_the_last_arrival_or_of_the_days_that_were_asked_for(
    tmp_path: Path,
) -> None:
    """Two devices; a works 0..100, b 50..150: one of two is held until 50, 200 of 300 s in all."""
    path = tmp_path / "two.jsonl"
    path.write_text(HEAD + a_job("a", 0, 100) + a_job("b", 50, 100), encoding="utf-8")
    plain, longer = (
        json.loads(play(str(path), "--policy", "fifo", "--json", "-", *more)[0])["runs"][0]
        for more in ([], ["--until", str(150 / 86400)])
    )
    assert (plain["allocated_pct"], plain["rates_days"]) == (50.0, round(50 / 86400, 5))
    assert (longer["allocated_pct"], longer["rates_days"]) == (66.67, round(150 / 86400, 5))
    assert plain["completion_s"]["max"] == longer["completion_s"]["max"] == 100.0
    path.write_text(HEAD + a_job("a", 0, 100) + a_job("b", 0, 50), encoding="utf-8")
    said, _ = play(str(path), "--policy", "fifo")
    assert (
        f"2 jobs; rates (allocated, utilised, Jain) over each run's own {100 / 86400:.5f} days"
        in said
    )
    assert "75.0" in said  # 100 + 50 of 200


def test_rates_of_a_burst_are_of_the_whole_run_as_almost_all_happens_behind_it(
    tmp_path: Path,
) -> None:
    """Two devices, a job of 100 s at each of 0, 1, ... 9 s: five rounds of two.

    Until 9 s 9 + 8 device seconds of 1000 were held. The second of each round ends a second after
    the first, so that one device idles for the first second and the other for the last: 1000 of
    2 * 501.
    """
    path = tmp_path / "burst.jsonl"
    burst = "".join(a_job(f"j{k}", k, 100) for k in range(10))
    path.write_text(HEAD + burst, encoding="utf-8")
    told = json.loads(play(str(path), "--policy", "fifo", "--json", "-")[0])
    [run] = told["runs"]
    assert (told["rates_over"], run["rates_days"]) == ("run", round(501 / 86400, 5))
    assert run["allocated_pct"] == 99.8
    # with one that comes at 60, 60 + 59 device seconds of 1100 were held before: more than a tenth
    path.write_text(HEAD + burst + a_job("late", 60, 100), encoding="utf-8")
    told = json.loads(play(str(path), "--policy", "fifo", "--json", "-")[0])
    assert (told["rates_over"], told["runs"][0]["rates_days"]) == ("arrivals", round(60 / 86400, 5))
    said, _ = play(str(path), "--policy", "fifo")
    assert "days, until the last arrival." in said
    told = json.loads(play(str(path), "--policy", "fifo", "--json", "-", "--until", "0.0001")[0])
    assert (told["rates_over"], told["runs"][0]["rates_days"]) == ("days", 0.0001)


def test_table_says_of_which_runs_the_waits_are_too_short(tmp_path: Path) -> None:
    """Two devices: a runs 0..100, b wants three and never starts, until the run ends at 100."""
    path = tmp_path / "two.jsonl"
    path.write_text(HEAD + a_job("a", 0, 100) + a_job("b", 20, 100, devices=3), encoding="utf-8")
    said, _ = play(str(path), "--policy", "fifo")
    row, legend = said.splitlines()[-2:]
    # a waited 0 s, b 80: 40 in the mean, 72 nine in ten
    assert row.split()[:3] == ["fifo", ">=40.0", ">=72.0"]
    assert row.split()[-1] == "1"
    assert legend.startswith(">=: jobs that had not started")


WRONG = {
    "an end at the begin": (["--until", "0"], "until"),
    "a policy that nobody knows": (["--policy", "magic"], "magic"),
    "a setting that is none": (["--set", "order.speed=1"], "speed"),
    "a setting without a value": (["--set", "placement"], "NAME=VALUE"),
    "a group": (["--set", "order=1"], "group"),
    "a text as a number": (["--set", "order.age=old"], "old"),
    "a weight that is NaN": (["--set", "order.age=nan"], "age"),
    "a site without nodes": (["--nodes", "0"], "nodes"),
    "a load without end": (["--load", "inf"], "load"),
    "days that are no number": (["--days", "nan"], "days"),
    "a file that is not there": (["/nowhere/at/all.jsonl"], "nowhere"),
    "openb without nodes": (["x.csv", "--format", "openb"], "--nodes-file"),
    "gavel without throughputs": (["x.trace", "--format", "gavel"], "--throughputs"),
}


@pytest.mark.parametrize(("arguments", "word"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_played_is_named(arguments: list[str], word: str) -> None:
    with pytest.raises(CommandError, match=word):
        play(*arguments)


def test_a_file_that_makes_no_sense_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"record": "trace", "version": 1, "cluster": "c", "begin_s": 0}\nwhat?\n')
    with pytest.raises(CommandError, match=r"bad\.jsonl, line 2"):
        play(str(path))


@pytest.mark.parametrize(
    "arguments",
    [
        ["{bad}"],
        ["{bad}", "--format", "openb", "--nodes-file", "{good}"],
        ["{good}", "--format", "openb", "--nodes-file", "{bad}"],
        ["{bad}", "--format", "gavel", "--throughputs", "{object}"],
        ["{good}", "--format", "gavel", "--throughputs", "{bad}"],
    ],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, arguments: list[str]) -> None:
    times = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"
    files = {"bad": b"\xff\xfe\x00", "good": times.encode(), "object": b"{}"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = {name: str(tmp_path / name) for name in files}
    with pytest.raises(CommandError, match=r"/bad: b'.*' is no UTF-8$"):
        play(*(one.format(**paths) for one in arguments))


def test_throughputs_of_nothing_leave_nothing_to_play(tmp_path: Path) -> None:
    trace, measured = tmp_path / "msr.trace", tmp_path / "none.json"
    trace.write_text("A\tcommand\t-n\t1\t100\t0\t1\n", encoding="utf-8")
    measured.write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match=r"none\.json: '1 jobs' of .*none can be played"):
        play(str(trace), "--format", "gavel", "--throughputs", str(measured))


def test_jobs_that_are_left_out_are_told_in_the_table(tmp_path: Path) -> None:
    trace, measured = tmp_path / "msr.trace", tmp_path / "some.json"
    lines = (f"{kind}\tcommand\t-n\t1\t100\t{at_s}\t1\n" for kind, at_s in ("A0", "B1", "A2"))
    trace.write_text("".join(lines), encoding="utf-8")
    measured.write_text("""{"v100": {"('A', 1)": {"null": 1.0}}}""", encoding="utf-8")
    said, _ = play(str(trace), "--format", "gavel", "--throughputs", str(measured))
    assert "2 jobs, 1 left out, as nobody measured their kind; rates" in said


@pytest.mark.parametrize("option", ["--json", "--csv"])
def test_answers_that_cannot_be_written_are_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch, option: str
) -> None:
    monkeypatch.setattr("scheduler.management.commands.simulate.compare", pytest.fail)
    nowhere = tmp_path / "not" / "there"
    with pytest.raises(CommandError, match=r"cannot write .*there: No such file"):
        play(*SMALL, option, str(nowhere))
    with pytest.raises(CommandError, match=r"cannot write .*: Is a directory"):
        play(*SMALL, option, str(tmp_path))
    with pytest.raises(CommandError, match="cannot both go to standard output"):
        play(*SMALL, "--json", "-", "--csv", "-")


def test_answer_that_would_overwrite_another_or_what_is_read_is_refused(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("scheduler.management.commands.simulate.compare", pytest.fail)
    trace, link, new = (tmp_path / name for name in ("site.jsonl", "link.jsonl", "new"))
    trace.write_text(HEAD, encoding="utf-8")
    link.symlink_to(trace)
    for option in ("--json", "--csv"):
        for path in (trace, link, tmp_path / "." / "x" / ".." / "site.jsonl"):
            (tmp_path / "x").mkdir(exist_ok=True)
            with pytest.raises(CommandError, match="is read, and an answer would overwrite it"):
                play(str(trace), option, str(path))
    with pytest.raises(CommandError, match=r"new is to hold two answers"):
        play(*SMALL, "--json", str(new), "--csv", str(tmp_path / "x" / ".." / "new"))
    assert (trace.read_text(encoding="utf-8"), new.exists()) == (HEAD, False)


def test_answers_may_both_be_thrown_away() -> None:
    said, _ = play(*SMALL, "--policy", "fifo", "--json", "/dev/null", "--csv", "/dev/null")
    assert "fifo" in said


def test_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "site.jsonl"
    path.write_text(HEAD.lstrip() + a_job("a", 0, 100), encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert json.loads(play(str(path), "--policy", "fifo", "--json", "-")[0])["jobs"] == 1


def test_name_that_could_not_be_written_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path, rows = tmp_path / "site.jsonl", tmp_path / "jobs.csv"
    path.write_text(HEAD + a_job("j\ud800", 0, 100), encoding="utf-8")
    with pytest.raises(CommandError, match=r"line 6: '\\ud800' holds half of a surrogate pair"):
        play(str(path), "--policy", "fifo", "--csv", str(rows))
    assert not rows.exists()


def test_what_a_file_held_stays_until_there_is_an_answer(tmp_path: Path) -> None:
    kept, new = tmp_path / "kept.json", tmp_path / "new.csv"
    kept.write_text("old", encoding="utf-8")
    with pytest.raises(CommandError, match="magic"):
        play(*SMALL, "--policy", "magic", "--json", str(kept), "--csv", str(new))
    assert (kept.read_text(encoding="utf-8"), new.exists()) == ("old", False)
