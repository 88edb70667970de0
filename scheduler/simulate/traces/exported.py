"""Our own format: a site's fleet, tenants and jobs as JSON lines; see docs/guides/simulation.md.

Each line is an object whose `record` says what it is: `trace` (the first line), `flavor`, `node`,
`tenant` (parents first) or `job`. What is left out has its default; what is not known is an error,
so that a slip of the pen does not pass for a default.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import FlavorSpec, JobSpec, QuotaLine, Snapshot, TenantNode
from scheduler.simulate.errors import TraceError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.fleet import NodeRow, empty_fleet

VERSION = 1
MOST_LINE = 1 << 20
MOST_DEVICES = 1024
_PRIORITY = 1 << 31


@dataclass(frozen=True, slots=True)
class Trace:
    """A world in which nothing waits or runs, and the jobs that arrive."""

    world: Snapshot
    jobs: tuple[SimJob, ...]


# -- reading ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Line:
    """One object of the file; every value is asked for once, and none may be left."""

    file: str
    number: int
    values: dict[str, Any]

    def cell(self, name: str, default: object = None) -> Cell:
        return Cell(self.file, self.number, name, self.values.pop(name, default))

    def flag(self, name: str, *, default: bool) -> bool:
        cell = self.cell(name, default)
        if not isinstance(cell.value, bool):
            raise cell.error("is neither true nor false")
        return cell.value

    def names(self, name: str) -> tuple[str, ...]:
        cell = self.cell(name, [])
        if not isinstance(cell.value, list):
            raise cell.error("is no list")
        return tuple(cell._replace(value=one).text() for one in cell.value)

    def mapping(self, name: str) -> dict[str, Cell]:
        cell = self.cell(name, {})
        if not isinstance(cell.value, dict):
            raise cell.error("is no object")
        return {
            key: cell._replace(column=f"{name} {key}", value=value)
            for key, value in cell.value.items()
        }

    def done(self) -> None:
        if self.values:
            name = min(self.values)
            raise TraceError(self.file, self.number, name, self.values[name], "is not known here")


@dataclass(slots=True)
class _Read:
    """What was read so far."""

    cluster: str = ""
    begin_s: float = 0.0
    flavors: dict[str, FlavorSpec] = field(default_factory=dict)
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    tenants: dict[str, TenantNode] = field(default_factory=dict)
    jobs: dict[str, SimJob] = field(default_factory=dict)


def read_trace(lines: Iterable[str], file: str) -> Trace:
    """Return what a file says; empty lines are skipped.

    Args:
        lines: of the file.
        file: its name, for errors.

    Raises:
        TraceError: a line is no such object, a value is missing, not known, of the wrong kind or
            out of bounds, a name occurs twice, or names a flavor, tenant or parent that no line
            before it describes.
    """
    read, first = _Read(), True
    for number, text in enumerate(lines, start=1):
        if text.strip():
            line = _Line(file, number, _loaded(text, file, number))
            record = line.cell("record")
            kinds = {"trace": _head} if first else _RECORDS
            if not isinstance(record.value, str) or record.value not in kinds:
                raise record.error(f"is not one of {', '.join(kinds)}")
            kinds[record.value](line, read)
            line.done()
            first = False
    if first:
        raise TraceError(file, 0, "", "", "has no line")
    fleet = empty_fleet(read.nodes.values(), list(read.flavors.values()))
    tenants = tuple(read.tenants.values())
    world = Snapshot(read.cluster, read.begin_s, fleet, (), (), tenants)
    return Trace(world, tuple(read.jobs.values()))


def _loaded(text: str, file: str, number: int) -> dict[str, Any]:
    try:
        if len(text) > MOST_LINE:
            raise TraceError(file, number, "", text, f"is longer than {MOST_LINE} characters")
        value = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise TraceError(file, number, "", text, "is no JSON") from broken
    if not isinstance(value, dict):
        raise TraceError(file, number, "", value, "is no object")
    return value


def _new(name: Cell, known: Mapping[str, object]) -> str:
    if name.text() in known:
        raise name.error("occurs twice")
    return name.text()


def _known(name: Cell, known: Mapping[str, object], what: str) -> str:
    if name.text() not in known:
        raise name.error(f"is no {what} of this file so far")
    return name.text()


def _head(line: _Line, read: _Read) -> None:
    version = line.cell("version")
    if version.integer() != VERSION:
        raise version.error(f"is not the version {VERSION}")
    read.cluster = line.cell("cluster").text()
    read.begin_s = line.cell("begin_s").number()


def _flavor(line: _Line, read: _Read) -> None:
    name = _new(line.cell("name"), read.flavors)
    units, watts = line.cell("compute_units"), line.cell("power_w")
    read.flavors[name] = FlavorSpec(
        name,
        None if units.value is None else units.positive(),
        line.cell("memory_mib").integer(),
        None if watts.value is None else watts.number(),
    )


def _node(line: _Line, read: _Read) -> None:
    name = _new(line.cell("name"), read.nodes)
    devices = line.names("devices")
    if len(devices) > MOST_DEVICES:
        raise TraceError(line.file, line.number, "devices", len(devices), "are too many")
    at = Cell(line.file, line.number, "devices", "")
    for flavor in devices:
        _known(at._replace(value=flavor), read.flavors, "flavor")
    read.nodes[name] = NodeRow(
        name,
        line.cell("cpu_milli").integer(),
        line.cell("memory_mib").integer(),
        devices,
        labels={key: cell.text() for key, cell in line.mapping("labels").items()},
        taints=frozenset(line.names("taints")),
    )


def _tenant(line: _Line, read: _Read) -> None:
    slug, parent = _new(line.cell("slug"), read.tenants), line.cell("parent")
    read.tenants[slug] = TenantNode(
        slug=slug,
        parent=None if parent.value is None else _known(parent, read.tenants, "tenant"),
        fair_weight=line.cell("fair_weight", 1.0).number(),
        quotas={flavor: _quota(cell) for flavor, cell in line.mapping("quotas").items()},
        preemption_fence=line.flag("preemption_fence", default=False),
        queue_priority=line.cell("queue_priority", 0).integer(low=-_PRIORITY, high=_PRIORITY),
        created_s=line.cell("created_s", 0.0).number(),
    )


def _quota(cell: Cell) -> QuotaLine:
    """Return a quota out of [nominal, borrowing limit or null, lending limit or null]."""
    if not isinstance(cell.value, list) or len(cell.value) != 3:  # noqa: PLR2004 - the three
        raise cell.error("is not [nominal, borrowing limit, lending limit]")
    nominal, *limits = (cell._replace(value=one) for one in cell.value)
    borrowing, lending = (None if one.value is None else one.integer() for one in limits)
    return QuotaLine(nominal.integer(), borrowing, lending)


def _job(line: _Line, read: _Read) -> None:
    uid = _new(line.cell("uid"), read.jobs)
    fails = line.cell("fails_after_s")
    read.jobs[uid] = SimJob(
        spec=_spec(line, uid, read),
        work=line.cell("work").positive(),
        throughput={flavor: cell.number() for flavor, cell in line.mapping("throughput").items()},
        scaling=line.cell("scaling", 1.0).number(high=1.0),
        startup_s=line.cell("startup_s", 0.0).number(),
        checkpoint_every_s=line.cell("checkpoint_every_s", 0.0).number(),
        saves_when_told=line.flag("saves_when_told", default=False),
        fails_after_s=math.inf if fails.value is None else fails.positive(),
    )


def _spec(line: _Line, uid: str, read: _Read) -> JobSpec:
    least = line.cell("replicas_min", 1).integer(low=1)
    return JobSpec(
        uid=uid,
        tenant=_known(line.cell("tenant"), read.tenants, "tenant"),
        kind=line.cell("kind", "batch").text(),
        shape=ReplicaShape(
            line.cell("cpu_milli").integer(low=1),
            line.cell("memory_mib").integer(low=1),
            line.cell("devices", 0).integer(high=MOST_DEVICES),
            line.cell("gpu_milli", 1000).integer(low=1, high=1000),
            line.cell("gpu_memory_mib", 0).integer(),
        ),
        replicas_min=least,
        replicas_max=line.cell("replicas_max", least).integer(low=least),
        flavors=line.names("flavors"),
        priority=line.cell("priority", 0).integer(low=-_PRIORITY, high=_PRIORITY),
        preemptible=line.flag("preemptible", default=True),
        time_limit_s=line.cell("time_limit_s").positive(),
        submitted_s=line.cell("submitted_s").number(low=read.begin_s),
        tolerations=frozenset(line.names("tolerations")),
        min_throughput=line.cell("min_throughput", 0.0).number(high=1.0),
    )


_RECORDS: Mapping[str, Callable[[_Line, _Read], None]] = {
    "flavor": _flavor,
    "node": _node,
    "tenant": _tenant,
    "job": _job,
}


# -- writing ----------------------------------------------------------------------------------


def write_trace(trace: Trace) -> Iterator[str]:
    """Give the lines of a file that `read_trace` reads back, without line ends."""
    world = trace.world
    head = {"version": VERSION, "cluster": world.cluster, "begin_s": world.now_s}
    yield _written("trace", head)
    for flavor in world.fleet.flavors:
        yield _written(
            "flavor",
            {
                "name": flavor.name,
                "memory_mib": flavor.memory_mib,
                "compute_units": flavor.compute_units,
                "power_w": flavor.power_w,
            },
        )
    for n in range(len(world.fleet.node_names)):
        yield _written("node", _node_values(world, n))
    for tenant in world.tenants:
        yield _written("tenant", _tenant_values(tenant))
    for job in sorted(trace.jobs, key=lambda job: (job.spec.submitted_s, job.spec.uid)):
        yield _written("job", _job_values(job))


def _written(record: str, values: Mapping[str, object]) -> str:
    kept = {name: value for name, value in values.items() if value not in (None, [], {})}
    return json.dumps({"record": record} | kept, ensure_ascii=False, allow_nan=False)


def _node_values(world: Snapshot, n: int) -> dict[str, object]:
    fleet = world.fleet
    of_node = fleet.device_flavor[fleet.device_node == n].tolist()
    return {
        "name": fleet.node_names[n],
        "cpu_milli": int(fleet.node_cpu_milli[n]),
        "memory_mib": int(fleet.node_memory_mib[n]),
        "devices": [fleet.flavors[flavor].name for flavor in of_node],
        "labels": dict(fleet.node_labels[n]),
        "taints": sorted(fleet.node_taints[n]),
    }


def _tenant_values(tenant: TenantNode) -> dict[str, object]:
    return {
        "slug": tenant.slug,
        "parent": tenant.parent,
        "fair_weight": tenant.fair_weight,
        "quotas": {
            flavor: [line.nominal, line.borrowing_limit, line.lending_limit]
            for flavor, line in sorted(tenant.quotas.items())
        },
        "preemption_fence": tenant.preemption_fence,
        "queue_priority": tenant.queue_priority,
        "created_s": tenant.created_s,
    }


def _job_values(job: SimJob) -> dict[str, object]:
    spec, shape = job.spec, job.spec.shape
    return {
        "uid": spec.uid,
        "tenant": spec.tenant,
        "kind": spec.kind,
        "cpu_milli": shape.cpu_milli,
        "memory_mib": shape.memory_mib,
        "devices": shape.devices,
        "gpu_milli": shape.gpu_milli,
        "gpu_memory_mib": shape.gpu_memory_mib,
        "replicas_min": spec.replicas_min,
        "replicas_max": spec.replicas_max,
        "flavors": list(spec.flavors),
        "priority": spec.priority,
        "preemptible": spec.preemptible,
        "time_limit_s": spec.time_limit_s,
        "submitted_s": spec.submitted_s,
        "tolerations": sorted(spec.tolerations),
        "min_throughput": spec.min_throughput,
        "work": job.work,
        "throughput": dict(job.throughput),
        "scaling": job.scaling,
        "startup_s": job.startup_s,
        "checkpoint_every_s": job.checkpoint_every_s,
        "saves_when_told": job.saves_when_told,
        "fails_after_s": None if job.fails_after_s == math.inf else job.fails_after_s,
    }
