"""Reads Gavel's job traces and throughputs, and makes jobs of them that can be simulated.

The caller opens the files; what is given here is any iterable of lines, or the text.

Source: stanford-futuredata/gavel, scheduler/job.py (columns), scheduler/utils.py (keys of the
throughputs); "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import FlavorSpec, JobSpec, Snapshot, TenantNode
from scheduler.simulate.errors import TraceError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.fleet import NodeRow, empty_fleet

COLUMNS = (
    "job_type",
    "command",
    "directory",
    "step_argument",
    "needs_data",
    "total_steps",
    "scale_factor",
    "weight",
    "slo",
    "arrival_s",
)
"""Of the traces that Gavel generates."""

FEWER_COLUMNS = (
    "job_type",
    "command",
    "step_argument",
    "needs_data",
    "total_steps",
    "arrival_s",
    "scale_factor",
)
"""Of the traces that were made of a cluster's log (msr)."""

CLUSTER = {"v100": 36, "p100": 36, "k80": 36}
"""Devices of each flavor in the paper's simulated cluster, fastest first (section 7.1)."""

PER_NODE = 4
CU = {"v100": 125.0, "p100": 19.0, "k80": 6.0}
"""Dense FP16 TFLOPS of a device, by its maker."""

_KEY = re.compile(r"\('(.{1,200})', ([0-9]{1,4})\)")
ALONE = "null"
TENANT = "all"


class Kind(NamedTuple):
    """Jobs of one kind have the same throughput: what they train, and on how many devices."""

    job_type: str
    scale_factor: int


@dataclass(frozen=True, slots=True)
class GavelJob:
    """One line of a trace.

    Attributes:
        kind: what it is.
        steps: to do, > 0.
        weight: fair weight, > 0; 1 where the trace has none.
        arrival_s: seconds since the begin of the trace, >= 0.
    """

    kind: Kind
    steps: float
    weight: float
    arrival_s: float


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Steps a second that were measured.

    Attributes:
        alone: (flavor, kind) -> alone on its devices, >= 0; 0 = it does not run there.
        beside: (flavor, kind, other kind) -> of both where they share their devices.
    """

    alone: Mapping[tuple[str, Kind], float]
    beside: Mapping[tuple[str, Kind, Kind], tuple[float, float]]

    def of(self, kind: Kind, flavors: Iterable[str]) -> dict[str, float]:
        """Return flavor -> steps a second, of those of some flavors on which the kind runs."""
        found = {flavor: self.alone.get((flavor, kind), 0.0) for flavor in flavors}
        return {flavor: rate for flavor, rate in found.items() if rate > 0}


def read_jobs(lines: Iterable[str], file: str) -> tuple[GavelJob, ...]:
    """Return the jobs of a trace, in its order; empty lines are skipped.

    Args:
        lines: of the file, tab-separated.
        file: its name, for errors.

    Raises:
        TraceError: a line has other columns than Gavel's two formats, or a value is no number or
            out of bounds.
    """
    return tuple(
        _job(line.rstrip("\r\n"), number, file)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    )


def _job(line: str, number: int, file: str) -> GavelJob:
    values = line.split("\t")
    named = {len(COLUMNS): COLUMNS, len(FEWER_COLUMNS): FEWER_COLUMNS}.get(len(values))
    if named is None:
        raise TraceError(file, number, "", line, f"has {len(values)} columns, not 7 or 10")
    cells = {
        name: Cell(file, number, name, value) for name, value in zip(named, values, strict=True)
    }
    kind = Kind(cells["job_type"].text(), cells["scale_factor"].integer(low=1, high=1024))
    weight = cells["weight"].positive() if "weight" in cells else 1.0
    return GavelJob(kind, cells["total_steps"].positive(), weight, cells["arrival_s"].number())


def read_throughputs(text: str, file: str) -> Throughputs:
    """Return the throughputs of Gavel's JSON file.

    Raises:
        TraceError: it is no JSON of that form, or a throughput is no number or negative.
    """
    flavors = _object(file, "", _loaded(text, file))
    alone: dict[tuple[str, Kind], float] = {}
    beside: dict[tuple[str, Kind, Kind], tuple[float, float]] = {}
    for flavor, kinds in flavors.items():
        for key, others in _object(file, flavor, kinds).items():
            kind = _kind(file, flavor, key)
            for other, value in _object(file, f"{flavor} {key}", others).items():
                where = f"{flavor} {key} {other}"
                if other == ALONE:
                    alone[flavor, kind] = Cell(file, 0, where, value).number()
                else:
                    pair = _pair(file, where, value)
                    beside[flavor, kind, _kind(file, flavor, other)] = pair
    return Throughputs(alone, beside)


def _loaded(text: str, file: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise TraceError(file, 0, "", constant, "is no number")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as broken:
        raise TraceError(file, 0, "", str(broken), "is no JSON") from broken


def _object(file: str, column: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(file, 0, column, value, "is no object")
    return value


def _kind(file: str, flavor: str, key: str) -> Kind:
    found = _KEY.fullmatch(key)
    if not found:
        raise TraceError(file, 0, flavor, key, "is not ('job type', scale factor)")
    return Kind(found[1], int(found[2]))


def _pair(file: str, where: str, value: object) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - one of each job
        raise TraceError(file, 0, where, value, "is not a pair of throughputs")
    first, second = (Cell(file, 0, where, one).number() for one in value)
    return first, second


def paper_cluster() -> Snapshot:
    """Return the empty cluster of the paper, one tenant, no quota."""
    rows = [
        NodeRow(f"{name}-{k:02d}", 64_000, 262_144, (name,) * PER_NODE)
        for name, count in CLUSTER.items()
        for k in range(count // PER_NODE)
    ]
    flavors = [FlavorSpec(name, CU[name], 16_384, None) for name in CLUSTER]
    tenants = (TenantNode(TENANT, None, 1.0, {}),)
    return Snapshot("gavel", 0.0, empty_fleet(rows, flavors), (), (), tenants)


def sim_jobs(
    jobs: Sequence[GavelJob],
    throughputs: Throughputs,
    flavors: Sequence[str],
    *,
    begin_s: float,
    limit_frac: float,
) -> tuple[list[SimJob], int]:
    """Return the jobs as the simulator plays them, and how many were left out.

    Each is a gang of `scale_factor` replicas of one device, allowed on the flavors on which it was
    measured, fastest first; a job that was measured on none is left out. When it is evicted its
    work is saved, as in Gavel's rounds. Its time limit is its run time on its slowest flavor times
    `limit_frac`.

    Args:
        jobs: of a trace.
        throughputs: of the flavors.
        flavors: of the cluster.
        begin_s: epoch seconds of the begin of the trace.
        limit_frac: >= 1.
    """
    made = []
    for number, job in enumerate(jobs):
        rates = throughputs.of(job.kind, flavors)
        if rates:
            made.append(_sim_job(number, job, rates, begin_s, limit_frac))
    return made, len(jobs) - len(made)


def _sim_job(
    number: int, job: GavelJob, rates: Mapping[str, float], begin_s: float, limit_frac: float
) -> SimJob:
    count = job.kind.scale_factor
    spec = JobSpec(
        uid=f"job-{number:06d}",
        tenant=TENANT,
        kind="training",
        shape=ReplicaShape(cpu_milli=1000, memory_mib=1024, devices=1),
        replicas_min=count,
        replicas_max=count,
        flavors=tuple(sorted(rates, key=lambda flavor: (-rates[flavor], flavor))),
        priority=0,
        preemptible=True,
        time_limit_s=limit_frac * job.steps / min(rates.values()),
        submitted_s=begin_s + job.arrival_s,
    )
    return SimJob(spec, job.steps, throughput=rates, saves_when_told=True)
