"""Tenants of a trace, and what a site knows: speeds, neighbours, reservations, recent demand."""

from collections.abc import Mapping

from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import DemandKind, Fleet, QuotaLine, Reservation, TenantNode
from scheduler.decide.bounds import MOST_QUOTA
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.exported.content import Content
from scheduler.simulate.traces.exported.hardware import MOST_DEVICES
from scheduler.simulate.traces.exported.line import Line, known, new
from scheduler.simulate.usage import most_used

MOST_PRIORITY = 1 << 31
_PAIR = 2


def read_tenant(line: Line, content: Content) -> None:
    """Read a tenant with its quotas and its past use."""
    slug, parent = new(line.cell("slug"), content.tenants), line.cell("parent")
    content.tenants[slug] = TenantNode(
        slug=slug,
        parent=None if parent.value is None else known(parent, content.tenants, "tenant"),
        fair_weight=line.cell("fair_weight", 1.0).number(),
        quotas={flavor: _quota(cell) for flavor, cell in line.mapping("quotas").items()},
        preemption_fence=line.flag("preemption_fence", default=False),
        queue_priority=line.cell("queue_priority", 0).integer(
            low=-MOST_PRIORITY, high=MOST_PRIORITY
        ),
        created_s=line.cell("created_s", 0.0).number(),
    )
    _read_usage(line, slug, content)


def _read_usage(line: Line, slug: str, content: Content) -> None:
    """Read past use: that of the most used flavor, or of each one."""
    usage = line.values.get("usage_decayed")
    if not isinstance(usage, dict):
        cell = line.cell("usage_decayed")
        if usage is not None:
            content.usage[slug] = cell.number()
        return
    past_use = {}
    for flavor, cell in line.mapping("usage_decayed").items():
        if flavor not in content.flavors and flavor != CPU_FLAVOR:
            raise cell.error("is of no flavor of this file so far")
        past_use[slug, flavor] = cell.number()
    content.past_use |= past_use
    content.usage |= most_used(past_use)


def _quota(cell: Cell) -> QuotaLine:
    """Return a quota out of [nominal, borrowing limit or null, lending limit or null]."""
    if not isinstance(cell.value, list) or len(cell.value) != 3:  # noqa: PLR2004 - the three
        raise cell.error("is not [nominal, borrowing limit, lending limit]")
    nominal, *limits = (cell._replace(value=one) for one in cell.value)
    borrowing, lending = (
        None if one.value is None else one.integer(high=MOST_QUOTA) for one in limits
    )
    return QuotaLine(nominal.integer(high=MOST_QUOTA), borrowing, lending)


def usage_values(
    usage: Mapping[str, float], past_use: Mapping[tuple[str, str], float]
) -> dict[str, object]:
    """Return tenant -> past use: by flavor where that is known, else of the most used one."""
    values: dict[str, dict[str, float]] = {}
    for (tenant, flavor), used in sorted(past_use.items()):
        values.setdefault(tenant, {})[flavor] = used
    return {**usage, **values}


def tenant_values(tenant: TenantNode, usage: Mapping[str, object]) -> dict[str, object]:
    """Return what `read_tenant` reads, with past use out of `usage_values`."""
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
        "usage_decayed": usage.get(tenant.slug),
    }


def read_throughput(line: Line, content: Content) -> None:
    """Read how fast a class of jobs runs on a flavor, against its fastest."""
    name = line.cell("job_class")
    key = name.text(), line.cell("flavor").text()
    if key in content.throughputs:
        raise name.error("occurs twice with this flavor")
    content.throughputs[key] = line.cell("throughput").positive(high=1.0)


def throughput_values(key: tuple[str, str], value: float) -> dict[str, object]:
    """Return what `read_throughput` reads."""
    return {"job_class": key[0], "flavor": key[1], "throughput": value}


def read_pairing(line: Line, content: Content) -> None:
    """Read how fast two classes of jobs run that share a device."""
    classes, rates = line.cells("classes"), line.cells("throughputs")
    for name, cells in (("classes", classes), ("throughputs", rates)):
        if len(cells) != _PAIR:
            raise Cell(line.file, line.number, name, len(cells)).error("values are not two")
    pair = classes[0].text(), classes[1].text()
    if pair in content.pairs:
        raise classes[0]._replace(value=pair).error("occurs twice")
    content.pairs[pair] = rates[0].number(high=1.0), rates[1].number(high=1.0)


def pairing_values(pair: tuple[str, str], rates: tuple[float, float]) -> dict[str, object]:
    """Return what `read_pairing` reads."""
    return {"classes": list(pair), "throughputs": list(rates)}


def read_reservation(line: Line, content: Content) -> None:
    """Read which nodes are set aside, from and until when, and for whom."""
    name = new(line.cell("id"), content.reserved)
    start_s, end = line.cell("start_s").number(), line.cell("end_s")
    if end.number() <= start_s:
        raise end.error("is not after start_s")
    nodes = tuple(known(cell, content.nodes, "node") for cell in line.cells("nodes"))
    tenants = frozenset(known(cell, content.tenants, "tenant") for cell in line.cells("tenants"))
    jobs = frozenset(line.names("jobs"))
    content.reserved[name] = Reservation(name, start_s, end.number(), (), tenants, jobs), nodes


def reservation_values(reservation: Reservation, fleet: Fleet) -> dict[str, object]:
    """Return what `read_reservation` reads."""
    return {
        "id": reservation.id,
        "start_s": reservation.start_s,
        "end_s": reservation.end_s,
        "nodes": [fleet.node_names[node] for node in reservation.nodes],
        "tenants": sorted(reservation.tenants),
        "jobs": sorted(reservation.jobs),
    }


def read_demand(line: Line, content: Content) -> None:
    """Read how many replicas of a kind have arrived lately."""
    kind = DemandKind(read_shape(line), line.names("flavors"), line.cell("count").positive())
    if (kind.shape, kind.flavors) in content.demand:
        raise Cell(line.file, line.number, "", kind.shape).error("is a kind that occurs twice")
    content.demand[kind.shape, kind.flavors] = kind


def demand_values(kind: DemandKind) -> dict[str, object]:
    """Return what `read_demand` reads."""
    return shape_values(kind.shape) | {"flavors": list(kind.flavors), "count": kind.count}


def read_shape(line: Line) -> ReplicaShape:
    """Read what one replica takes."""
    return ReplicaShape(
        line.cell("cpu_milli").integer(low=1),
        line.cell("memory_mib").integer(low=1),
        line.cell("devices", 0).integer(high=MOST_DEVICES),
        line.cell("gpu_milli", WHOLE_MILLI).integer(low=1, high=WHOLE_MILLI),
        line.cell("gpu_memory_mib", 0).integer(),
    )


def shape_values(shape: ReplicaShape) -> dict[str, object]:
    """Return what `read_shape` reads."""
    return {
        "cpu_milli": shape.cpu_milli,
        "memory_mib": shape.memory_mib,
        "devices": shape.devices,
        "gpu_milli": shape.gpu_milli,
        "gpu_memory_mib": shape.gpu_memory_mib,
    }
