"""Plays one trace under several policies, with progress, and writes what came out."""

import csv
import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError, CommandParser

from scheduler.core.errors import EngineError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.management.files import apart, writable
from scheduler.simulate.metrics import held_devices
from scheduler.simulate.pace import Pace
from scheduler.simulate.policies import NAMES, decider_of, policy_with
from scheduler.simulate.report import JOB_COLUMNS, figures, job_rows
from scheduler.simulate.result import Result
from scheduler.simulate.run import simulate
from scheduler.simulate.traces.exported import Trace

PROGRESS_S = 2.0
LEAST_PART = 0.1
"""Rates until the last arrival are told where a tenth of all device time at least was held then."""
UNSTARTED = ">=: jobs that had not started count what they had waited by the end of the run."
SIMULATED = "Figures of a simulation: what might have been, not what was."


class Stream(Protocol):
    """Takes text, as a file and a command's output do."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where answers go: paths ("-" = standard output, "" = nowhere) and streams."""

    json_path: str
    csv_path: str
    stdout: Stream
    stderr: Stream

    def check(self, *, reads: Iterable[Path] = (), writes: Iterable[Path] = ()) -> None:
        """Look, before hours of simulation, whether all can be written.

        Args:
            reads: files that the command reads.
            writes: others that it writes.

        Raises:
            CommandError: a file cannot be written, both answers are to go to standard output, or
                an answer would overwrite another one, or what is read.
        """
        paths = [path for path in (self.json_path, self.csv_path) if path]
        if paths == ["-", "-"]:
            raise CommandError("--json - and --csv - cannot both go to standard output")
        files = [*(Path(path) for path in paths if path != "-"), *writes]
        apart(files, reads)
        for path in files:
            writable(path)


class Over(StrEnum):
    """Which time rates are worked out over."""

    WINDOW = "window"
    """What was recorded; nothing is played that would happen later."""
    DAYS = "days"
    """The days that were asked for."""
    ARRIVALS = "arrivals"
    """The time until the last arrival."""
    RUN = "run"
    """All of each run, as its arrivals are a small part of it."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that all runs are compared over.

    Attributes:
        end_s: rates are those up to this moment, epoch seconds; inf = of each run up to its end.
        over: which time that is.
    """

    end_s: float
    over: Over

    @property
    def stops(self) -> bool:
        """Whether nothing is played that would happen later; else each run is played to its end."""
        return self.over is Over.WINDOW

    def that_tells(self, runs: Iterable[Result]) -> "Window":
        """Return it, or the whole of each run where almost all happened behind the last arrival.

        Forty jobs in as many seconds and ten hours of queue: rates over those seconds say nothing.
        """
        if self.over is not Over.ARRIVALS or any(_part(r, self.end_s) >= LEAST_PART for r in runs):
            return self
        return Window(math.inf, Over.RUN)


def _part(run: Result, end_s: float) -> float:
    """Return the device time held until a moment as a part of all that a run held."""
    held = held_devices(run.spans)
    whole = held.integral(run.begin_s, run.end_s)
    return held.integral(run.begin_s, end_s) / whole if whole else 1.0


def add_options(parser: CommandParser) -> None:
    """Add what both commands understand."""
    parser.add_argument(
        "--policy",
        default="present",
        help=f"whom to let decide, by comma: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change the policy, as order.fair_share=0 or placement=spread; may be repeated",
    )
    parser.add_argument("--json", default="", metavar="PATH", help="write all figures; - = here")
    parser.add_argument("--csv", default="", metavar="PATH", help="write one row per job; - = here")


@contextmanager
def told() -> Iterator[None]:
    """Say what the engine refuses, and what the disk does, in one sentence."""
    try:
        yield
    except (EngineError, OSError) as wrong:
        raise CommandError(str(wrong)) from wrong
    except KeyboardInterrupt as stopped:
        raise CommandError("stopped before the end: nothing was written") from stopped


def changed(policy: Policy, settings: Sequence[str]) -> Policy:
    """Return the policy with NAME=VALUE settings."""
    wrong = next((one for one in settings if "=" not in one), None)
    if wrong is not None:
        raise CommandError(f"--set {wrong!r} is not NAME=VALUE")
    return policy_with(policy, dict(one.split("=", 1) for one in settings))


def compare(
    trace: Trace,
    names: Sequence[str],
    policy: Policy,
    *,
    outputs: Outputs,
    about: Mapping[str, Any],
    window: Window,
    before: Mapping[str, Result] | None = None,
    begun: Collection[str] = (),
) -> None:
    """Play a trace under each policy and write the figures.

    Args:
        trace: world and jobs.
        names: of policies, as in `policies.NAMES`.
        policy: that `present` and the strategies follow.
        outputs: where to.
        about: what to say of it at the top.
        window: of the figures.
        before: name -> what was recorded, to stand beside.
        begun: uids of jobs that ran already at the begin.
    """
    deciders = {name: decider_of(name, policy) for name in dict.fromkeys(names)}
    law = policy.preemption
    pace = Pace(
        grace_s=law.grace_s,
        keep_size_s=law.grace_s + law.min_runtime_s,
        until_s=window.end_s if window.stops else math.inf,
    )
    results = dict(before or {})
    walls: dict[str, float] = {}
    for name, decider in deciders.items():
        began_s = time.monotonic()
        watch = _Progress(name, trace, outputs.stderr)
        results[name] = simulate(
            trace.world, trace.jobs, decider, pace=pace, watch=watch, past_use=trace.past_use
        )
        walls[name] = round(time.monotonic() - began_s, 2)
    window = window.that_tells(results.values())
    told = _Figures(trace, window, begun)
    runs = [
        told.of(name, result, simulated=name in walls)
        | ({"wall_s": walls[name]} if name in walls else {})
        for name, result in results.items()
    ]
    answer = dict(about) | {"note": SIMULATED, "rates_over": window.over.value, "runs": runs}
    _write(answer, results, outputs)


@dataclass(frozen=True, slots=True)
class _Figures:
    """Makes the figures of each run, all in the same way."""

    trace: Trace
    window: Window
    begun: Collection[str]

    def of(self, name: str, result: Result, *, simulated: bool) -> dict[str, Any]:
        run = {"policy": name, "simulated": simulated}
        tenants, until_s = self.trace.world.tenants, self.window.end_s
        return run | figures(result, tenants, begun=self.begun, until_s=until_s)


class _Progress:
    """Says how far a simulation is, now and then."""

    def __init__(self, name: str, trace: Trace, stream: Stream) -> None:
        self._name, self._stream = name, stream
        self._begin_s = trace.world.now_s
        last_s = max((job.spec.submitted_s for job in trace.jobs), default=self._begin_s)
        self._span_s = max(last_s - self._begin_s, 1.0)
        self._next_s = time.monotonic() + PROGRESS_S

    def __call__(self, snapshot: Snapshot, plan: Plan) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + PROGRESS_S
        passed_s = snapshot.now_s - self._begin_s
        self._stream.write(
            f"{self._name}: {min(100, round(100 * passed_s / self._span_s))} % of the arrivals, "
            f"day {passed_s / 86400:.1f}, {len(snapshot.running)} run, "
            f"{len(snapshot.pending) - len(plan.starts)} wait\n"
        )
        self._stream.flush()


def _write(answer: Mapping[str, Any], results: Mapping[str, Result], outputs: Outputs) -> None:
    if outputs.json_path:
        text = json.dumps(answer, indent=2, allow_nan=False) + "\n"
        _to(outputs.json_path, outputs.stdout, lambda stream: stream.write(text))
    if outputs.csv_path:
        _to(outputs.csv_path, outputs.stdout, lambda stream: _rows(stream, results))
    if "-" not in {outputs.json_path, outputs.csv_path}:
        outputs.stdout.write(_table(answer))


def _to(path: str, stdout: Stream, write: Callable[[Stream], object]) -> None:
    if path == "-":
        write(stdout)
        return
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        write(stream)


def _rows(stream: Stream, results: Mapping[str, Result]) -> None:
    writer = csv.DictWriter(stream, JOB_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name, result in results.items():
        writer.writerows(job_rows(name, result))


_OTHERS = {
    "left_out": "left out, as nobody measured their kind",
    "never_ran": "more never ran",
    "still_run": "had not ended",
}
"""Jobs that something else is to be said of."""

_SPANS = {
    Over.WINDOW: "the first {}",
    Over.DAYS: "the first {}",
    Over.ARRIVALS: "the first {}, until the last arrival",
    Over.RUN: "each run's own {}, as almost all happened after the last arrival",
}
"""Over which time rates are, said of a number of days."""

_COLUMNS = (
    ("policy", 14),
    ("wait mean", 13),
    ("wait p90", 13),
    ("allocated %", 12),
    ("utilised %", 11),
    ("Jain", 8),
    ("evictions", 10),
    ("not started", 12),
)


def _scope(answer: Mapping[str, Any]) -> str:
    """Return which jobs were played, and over which time the rates are."""
    counts = [f"{answer['jobs']} jobs"]
    counts += [f"{answer[name]} {said}" for name, said in _OTHERS.items() if answer.get(name)]
    days = sorted({run["rates_days"] for run in answer["runs"]})
    span = f"{days[0]}" if len(days) == 1 else f"{days[0]} to {days[-1]}"
    time = _SPANS[answer["rates_over"]].format(f"{span} days")
    return f"{', '.join(counts)}; rates (allocated, utilised, Jain) over {time}."


def _at_least(run: Mapping[str, Any], seconds: float | None) -> str | float | None:
    """Return a wait as it is told: who has not started waits longer than was seen."""
    return f">={seconds}" if run["unstarted"] else seconds


def _table(answer: Mapping[str, Any]) -> str:
    lines = [SIMULATED, _scope(answer), "".join(name.ljust(width) for name, width in _COLUMNS)]
    for run in answer["runs"]:
        values = (
            run["policy"],
            _at_least(run, run["waited_s"]["mean"]),
            _at_least(run, run["waited_s"]["p90"]),
            run["allocated_pct"],
            run["utilised_pct"],
            run["jain"],
            run["evictions"],
            run["unstarted"],
        )
        cells = zip(values, _COLUMNS, strict=True)
        lines.append(
            "".join(("-" if v is None else str(v)).ljust(width) for v, (_, width) in cells)
        )
    if any(run["unstarted"] for run in answer["runs"]):
        lines.append(UNSTARTED)
    return "\n".join(line.rstrip() for line in lines) + "\n"
