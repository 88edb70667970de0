"""`manage.py simulate [TRACE]`: a trace, or an invented site, under several policies."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.core.policy import Policy
from scheduler.management.arguments import number, seed, whole
from scheduler.management.comparison import (
    Outputs,
    Over,
    Window,
    add_options,
    changed,
    compare,
    told,
)
from scheduler.management.files import text_of
from scheduler.simulate.errors import TraceError
from scheduler.simulate.synthetic import Site, synthetic
from scheduler.simulate.traces import gavel, openb
from scheduler.simulate.traces.exported import Trace, read_trace

LIMIT_FRAC = 1.5
"""Public traces have no time limits: so many times the run time."""


class Command(BaseCommand):
    """Reads or invents jobs, plays them, and compares; it needs no database."""

    help = "Plays a trace, or an invented site, under one or more policies and compares them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trace", nargs="?", type=Path, help="a file; without one, invented")
        parser.add_argument("--format", choices=["kilter", "openb", "gavel"], default="kilter")
        parser.add_argument("--nodes-file", type=Path, help="openb: the list of nodes")
        parser.add_argument("--throughputs", type=Path, help="gavel: the measured throughputs")
        parser.add_argument(
            "--nodes", type=whole(1), default=4, help="invented: of eight devices each"
        )
        parser.add_argument("--tenants", type=whole(1), default=4, help="invented: teams")
        parser.add_argument(
            "--days", type=number(0, above=True), default=7.0, help="invented: of arrivals"
        )
        parser.add_argument(
            "--load", type=number(0, above=True), default=1.0, help="invented: asked of the time"
        )
        parser.add_argument("--seed", type=seed, default=0, help="invented: of chance")
        parser.add_argument(
            "--until",
            type=number(0, above=True),
            metavar="DAYS",
            help="rates (allocated, utilised, idle, Jain) are those of the first DAYS of every "
            "run; without it, of the time until the last arrival, or of each whole run where "
            "almost all happens after that. Waits and ends are those of all jobs",
        )
        add_options(parser)

    def handle(self, *_args: object, **options: Any) -> None:
        """Play it and write the figures."""
        outputs = Outputs(options["json"], options["csv"], self.stdout, self.stderr)
        with told():
            read = (options[name] for name in ("trace", "nodes_file", "throughputs"))
            outputs.check(reads=filter(None, read))
            trace, left_out = _trace(options)
            policy = changed(trace.policy or Policy(strategy="rules"), options["set"])
            about = {
                "trace": str(options["trace"] or "synthetic"),
                "jobs": len(trace.jobs),
                "left_out": left_out,
            }
            window = _window(trace, options["until"])
            names = options["policy"].split(",")
            compare(trace, names, policy, outputs=outputs, about=about, window=window)


def _window(trace: Trace, days: float | None) -> Window:
    """Return up to when rates are worked out.

    Behind the last arrival a site only runs empty, which says more of the longest job than of the
    policy. Where all arrive at once nothing is left but each run up to its own end.
    """
    begin_s = trace.world.now_s
    if days is not None:
        return Window(begin_s + days * 86400, Over.DAYS)
    last_s = max((job.spec.submitted_s for job in trace.jobs), default=begin_s)
    return Window(last_s, Over.ARRIVALS) if last_s > begin_s else Window(math.inf, Over.RUN)


def _trace(options: dict[str, Any]) -> tuple[Trace, int]:
    """Return what is to be played, and how many jobs of the file cannot be."""
    path: Path | None = options["trace"]
    if path is None:
        site = Site(options["nodes"], options["tenants"], options["days"], options["load"])
        return synthetic(site, np.random.default_rng(options["seed"])), 0
    if options["format"] == "openb":
        return _openb(path, _needed(options, "nodes_file", "--nodes-file")), 0
    if options["format"] == "gavel":
        return _gavel(path, _needed(options, "throughputs", "--throughputs"))
    with text_of(path) as lines:
        return read_trace(lines, str(path)), 0


def _openb(path: Path, nodes: Path) -> Trace:
    with text_of(path) as lines:
        pods = openb.read_pods(lines, str(path), timed=True)
    with text_of(nodes) as lines:
        world = openb.sim_world(openb.read_nodes(lines, str(nodes)))
    return Trace(world, tuple(openb.sim_jobs(pods, limit_frac=LIMIT_FRAC)))


def _gavel(path: Path, measured: Path) -> tuple[Trace, int]:
    with text_of(measured) as lines:
        rates = gavel.read_throughputs(lines.read(), str(measured))
    with text_of(path) as lines:
        read = gavel.read_jobs(lines, str(path))
    world = gavel.paper_cluster()
    jobs, left_out = gavel.sim_jobs(
        read, rates, list(gavel.CLUSTER), begin_s=world.now_s, limit_frac=LIMIT_FRAC
    )
    if left_out and not jobs:
        why = f"of {path} are of kinds that it does not measure on the cluster: none can be played"
        raise TraceError(str(measured), 0, "", f"{left_out} jobs", why)
    return Trace(world, tuple(jobs)), left_out


def _needed(options: dict[str, Any], name: str, option: str) -> Path:
    path: Path | None = options[name]
    if path is None:
        raise CommandError(f"the format {options['format']} needs {option} too")
    return path
