"""Our own format: a site's fleet, tenants and jobs as JSON lines; see docs/guides/simulation.md.

Each line is an object whose `record` says what it is: `trace` (the first line), then `policy`,
`flavor`, `node`, `tenant` (parents first), `throughput`, `pairing`, `reservation`, `demand` and
`job`. What is left out has its default; what is not known is an error, so that a slip of the pen
does not pass for a default.

A trace carries all that decisions look at. Left out is what a simulation makes itself: what is
free, what waits and runs, and what was said of expected starts.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.simulate.errors import InvalidSimulationError, TraceError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.exported.content import Content
from scheduler.simulate.traces.exported.hardware import (
    flavor_values,
    node_values,
    read_flavor,
    read_node,
)
from scheduler.simulate.traces.exported.jobs import job_values, read_job
from scheduler.simulate.traces.exported.line import Line
from scheduler.simulate.traces.exported.policy import policy_values, read_policy
from scheduler.simulate.traces.exported.site import (
    demand_values,
    pairing_values,
    read_demand,
    read_pairing,
    read_reservation,
    read_tenant,
    read_throughput,
    reservation_values,
    tenant_values,
    throughput_values,
    usage_values,
)

VERSION = 3
"""Of the files that are written. Version 2 knew no past use by flavor. Version 1 had none of: a
policy, throughputs, pairings, reservations, demand, ratios, usage, what devices and nodes are like
beyond their flavor, what a job wishes."""

OLDEST = 1
"""Of the files that are read: a later one only adds to it."""

MOST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Trace:
    """A world in which nothing waits or runs, the jobs that arrive, and how it was decided.

    Attributes:
        policy: of the site; None where it is not known.
        past_use: (tenant, flavor) -> decayed use at the begin, of which `world.usage_decayed` is
            the most of each tenant; a tenant is left out where it is not known by flavor.
    """

    world: Snapshot
    jobs: tuple[SimJob, ...]
    policy: Policy | None = None
    past_use: Mapping[tuple[str, str], float] = field(default_factory=dict)


_RECORDS: Mapping[str, Callable[[Line, Content], None]] = {
    "policy": read_policy,
    "flavor": read_flavor,
    "node": read_node,
    "tenant": read_tenant,
    "throughput": read_throughput,
    "pairing": read_pairing,
    "reservation": read_reservation,
    "demand": read_demand,
    "job": read_job,
}


def read_trace(lines: Iterable[str], file: str) -> Trace:
    """Return what a file says; empty lines are skipped.

    Args:
        lines: of the file.
        file: its name, for errors.

    Raises:
        TraceError: it is of a version that is not known, a line is no such object, a value is
            missing, not known, of the wrong kind or out of bounds, a name occurs twice, or names a
            flavor, node, tenant or parent that no line before it describes.
    """
    content, first = Content(), True
    for number, text in enumerate(lines, start=1):
        if text.strip():
            line = Line(file, number, _loaded(text, file, number))
            record = line.cell("record")
            kinds = {"trace": _head} if first else _RECORDS
            if not isinstance(record.value, str) or record.value not in kinds:
                raise record.error(f"is not one of {', '.join(kinds)}")
            kinds[record.value](line, content)
            line.done()
            first = False
    if first:
        raise TraceError(file, 0, "", "", "has no line")
    return Trace(content.world(), tuple(content.jobs.values()), content.policy, content.past_use)


def _loaded(text: str, file: str, number: int) -> dict[str, Any]:
    try:
        if len(text) > MOST_LINE:
            raise TraceError(file, number, "", text, f"is longer than {MOST_LINE} characters")
        value = json.loads(text, object_pairs_hook=_each_once)
        if "\\u" in text:  # only so can a half of a character come in
            json.dumps(value, ensure_ascii=False).encode()
    except _TwiceError as twice:
        raise TraceError(file, number, str(twice), text, "says it twice") from twice
    except UnicodeEncodeError as half:
        why = "holds half of a surrogate pair, which is no character and could not be written"
        raise TraceError(file, number, "", half.object[half.start : half.end], why) from half
    except (ValueError, RecursionError) as broken:
        raise TraceError(file, number, "", text, "is no JSON") from broken
    if not isinstance(value, dict):
        raise TraceError(file, number, "", value, "is no object")
    return value


class _TwiceError(ValueError):
    """An object has two values of one name."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return values


def _head(line: Line, content: Content) -> None:
    version = line.cell("version")
    if not OLDEST <= version.integer() <= VERSION:
        raise version.error(f"is a version that is not known here; {OLDEST} to {VERSION} are")
    content.cluster = line.cell("cluster").text()
    content.begin_s = line.cell("begin_s").number()
    cells = line.cells("runtime_ratios")
    content.ratios = tuple(cell.number(high=1.0) for cell in cells)
    if list(content.ratios) != sorted(content.ratios):
        raise TraceError(line.file, line.number, "runtime_ratios", "", "are not ascending")


def write_trace(trace: Trace) -> Iterator[str]:
    """Give the lines of a file that `read_trace` reads back, without line ends.

    Raises:
        InvalidSimulationError: a number is infinite or none.
    """
    world = trace.world
    head = {"version": VERSION, "cluster": world.cluster, "begin_s": world.now_s}
    yield _written("trace", head | {"runtime_ratios": list(world.runtime_ratios)})
    if trace.policy:
        yield _written("policy", policy_values(trace.policy))
    for flavor in world.fleet.flavors:
        yield _written("flavor", flavor_values(flavor))
    for n in range(len(world.fleet.node_names)):
        yield _written("node", node_values(world.fleet, n))
    usage = usage_values(world.usage_decayed, trace.past_use)
    for tenant in world.tenants:
        yield _written("tenant", tenant_values(tenant, usage))
    for key, value in world.throughputs.items():
        yield _written("throughput", throughput_values(key, value))
    for pair, rates in world.pairs.items():
        yield _written("pairing", pairing_values(pair, rates))
    for reservation in world.reservations:
        yield _written("reservation", reservation_values(reservation, world.fleet))
    for kind in world.demand_mix:
        yield _written("demand", demand_values(kind))
    for job in sorted(trace.jobs, key=lambda job: (job.spec.submitted_s, job.spec.uid)):
        yield _written("job", job_values(job))


def _written(record: str, values: Mapping[str, object]) -> str:
    kept = {name: value for name, value in values.items() if value not in (None, "", [], {})}
    try:
        return json.dumps({"record": record} | kept, ensure_ascii=False, allow_nan=False)
    except ValueError as endless:
        what = f"the {record} {str(kept)[:80]!r} holds a number that is infinite or none"
        raise InvalidSimulationError(what) from endless
