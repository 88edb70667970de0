"""Numbers of a command line: read, or refused with one sentence that names the argument."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence

import pytest
from django.core.management import CommandError, call_command

from benchmarks import completion, cycle, eta, packing, simulate
from benchmarks.fairness import __main__ as fairness
from scheduler.decide.bounds import MOST_SEED
from scheduler.management.arguments import interval, number, seeds, whole


def test_numbers_within_their_bounds_are_read() -> None:
    assert [whole(0, 5)("0"), whole(0, 5)("5"), whole(0, MOST_SEED)(str(MOST_SEED))] == [
        0,
        5,
        MOST_SEED,
    ]
    assert [number(0)("0"), number(0, 2)("2.0"), number(0, above=True)("1e-9")] == [0, 2, 1e-9]
    assert seeds("42,0") == [42, 0]
    assert [interval("0"), interval("1")] == [0, 1]


REFUSED = {
    "below": (whole(1), "0", "'0' is not a whole number from 1$"),
    "above": (whole(1, 5), "6", "'6' is not a whole number from 1 to 5$"),
    "half": (whole(0), "0.5", "'0.5' is not a whole number from 0$"),
    "no number": (number(0), "many", "'many' is not a number from 0$"),
    "not a number": (number(0), "nan", "'nan' is not a number from 0$"),
    "infinite": (number(0), "inf", "'inf' is not a number from 0$"),
    "the bound itself": (number(0, 9, above=True), "0", "'0' is not a number above 0 to 9$"),
    "too much": (number(0, 9), "10", "'10' is not a number from 0 to 9$"),
    "saved too often": (interval, "0.5", "'0.5' is neither 0 nor 1 at least$"),
    "one of many": (seeds, "42,-1", "'-1' is not a whole number from 0 to"),
}


@pytest.mark.parametrize(("read", "text", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_others_are_refused(read: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(ArgumentTypeError, match=says):
        read(text)


WRONG = [
    ("simulate", "--seed", "-1"),
    ("simulate", "--nodes", "0"),
    ("simulate", "--tenants", "-2"),
    ("simulate", "--days", "nan"),
    ("simulate", "--load", "inf"),
    ("replay", "--days", "nan"),
    ("replay", "--checkpoint-every", "-1"),
    ("replay", "--checkpoint-every", "nan"),
]


@pytest.mark.parametrize(("command", "option", "value"), WRONG)
def test_a_command_names_the_argument_that_is_wrong(command: str, option: str, value: str) -> None:
    with pytest.raises(CommandError, match=f"argument {option}: '{value}' is not a .*number"):
        call_command(command, f"{option}={value}")


FOLDER = ("--data", "nowhere")
FILES = ("--traces", "none", "--throughputs", "none")
BENCHMARKS = {
    "cycle": (cycle.main, "--seed", ()),
    "eta": (eta.main, "--openb-every", FOLDER),
    "simulate": (simulate.main, "--load", ()),
    "packing": (packing.main, "--seeds", FOLDER),
    "fairness": (fairness.main, "--days", ()),
    "completion": (completion.main, "--speed", FILES),
}


@pytest.mark.parametrize(("main", "option", "more"), BENCHMARKS.values(), ids=BENCHMARKS.keys())
def test_a_benchmark_names_the_argument_that_is_wrong(
    main: Callable[[Sequence[str]], None],
    option: str,
    more: Sequence[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main([*more, f"{option}=-1"])
    assert f"argument {option}: '-1' is not a " in capsys.readouterr().err
