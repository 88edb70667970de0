import json

import pytest

from scheduler.simulate.errors import TraceError
from scheduler.simulate.traces.gavel import Kind, read_jobs, read_throughputs, sim_jobs

TEN = "LM (batch size 5)\tpython3 main.py\tlm\t--steps\t1\t1200\t2\t3\t-1.000000\t46.5\n"
SEVEN = "A3C\tpython3 a3c.py\t--max-steps\t0\t95121\t6.000000\t1\n"
LM2, A3C1 = Kind("LM (batch size 5)", 2), Kind("A3C", 1)
MEASURED = {
    "k80": {"('LM (batch size 5)', 2)": {"null": 3.0}, "('A3C', 1)": {"null": 0.0}},
    "v100": {
        "('LM (batch size 5)', 2)": {"null": 12.0, "('A3C', 1)": [6.0, 1.5]},
        "('A3C', 1)": {"null": 7.0},
    },
}


def test_lines_of_ten_and_of_seven_columns_are_read() -> None:
    long, short = read_jobs([TEN, "\n", SEVEN], "a.trace")
    assert (long.kind, long.steps, long.weight, long.arrival_s) == (LM2, 1200.0, 3.0, 46.5)
    assert (short.kind, short.steps, short.weight, short.arrival_s) == (A3C1, 95121.0, 1.0, 6.0)


def test_throughputs_are_read_alone_and_beside_another() -> None:
    rates = read_throughputs(json.dumps(MEASURED), "t.json")
    assert rates.alone["k80", LM2] == 3.0
    assert rates.beside["v100", LM2, A3C1] == (6.0, 1.5)
    assert rates.of(A3C1, ["k80", "v100"]) == {"v100": 7.0}  # 0 steps a second: it does not run


def test_job_is_a_gang_allowed_where_it_was_measured_fastest_first() -> None:
    # 1200 steps at 3 a second on the slowest take 400 s; half as much again is its limit
    jobs = read_jobs([TEN, SEVEN.replace("\t1\n", "\t8\n")], "a.trace")
    rates = read_throughputs(json.dumps(MEASURED), "t.json")
    [made], left_out = sim_jobs(jobs, rates, ["k80", "v100"], begin_s=100.0, limit_frac=1.5)
    spec = made.spec
    assert (spec.replicas_min, spec.replicas_max, spec.shape.devices) == (2, 2, 1)
    assert spec.flavors == ("v100", "k80")
    assert (spec.submitted_s, spec.time_limit_s) == (146.5, 600.0)
    assert (made.work, made.rate("v100", 2), made.saves_when_told) == (1200.0, 12.0, True)
    assert left_out == 1  # nobody measured A3C on eight devices


LINES = {
    "too few columns": ("a\tb\n", "", 1),
    "steps that are no number": (SEVEN.replace("95121", "many"), "total_steps", 1),
    "steps that are NaN": (SEVEN.replace("95121", "nan"), "total_steps", 1),
    "no steps": (SEVEN.replace("95121", "0"), "total_steps", 1),
    "endless steps": (SEVEN.replace("95121", "inf"), "total_steps", 1),
    "negative arrival": (SEVEN.replace("6.000000", "-1"), "arrival_s", 1),
    "half a device": (SEVEN.replace("\t1\n", "\t0.5\n"), "scale_factor", 1),
    "a million devices": (SEVEN.replace("\t1\n", "\t1000000\n"), "scale_factor", 1),
    "no job type": (SEVEN.replace("A3C", ""), "job_type", 1),
    "weight of nothing": (TEN.replace("\t3\t", "\t0\t"), "weight", 1),
}


@pytest.mark.parametrize(("line", "column", "at"), LINES.values(), ids=LINES.keys())
def test_line_that_makes_no_sense_is_named(line: str, column: str, at: int) -> None:
    with pytest.raises(TraceError) as caught:
        read_jobs(["\n" * 1, line], "a.trace")
    assert (caught.value.file, caught.value.line, caught.value.column) == (
        "a.trace",
        1 + at,
        column,
    )
    assert "a.trace" in str(caught.value)


TEXTS = {
    "no JSON": "{",
    "a list": "[]",
    "a number that is none": '{"k80": {"(\'A3C\', 1)": {"null": NaN}}}',
    "a negative throughput": '{"k80": {"(\'A3C\', 1)": {"null": -1.0}}}',
    "an endless throughput": '{"k80": {"(\'A3C\', 1)": {"null": 1e999}}}',
    "a throughput that is a text": '{"k80": {"(\'A3C\', 1)": {"null": "fast"}}}',
    "a kind without a scale factor": '{"k80": {"A3C": {"null": 1.0}}}',
    "three of a pair": '{"k80": {"(\'A3C\', 1)": {"(\'A3C\', 1)": [1, 2, 3]}}}',
    "far too deep": "[" * 100_000,
    "a huge whole number": '{"k80": {"(\'A3C\', 1)": {"null": 1' + "0" * 400 + "}}}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_throughputs_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(TraceError, match=r"t\.json"):
        read_throughputs(text, "t.json")
