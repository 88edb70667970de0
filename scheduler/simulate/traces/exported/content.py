"""What was read of a trace so far."""

from dataclasses import dataclass, field, replace

from scheduler.core.policy import Policy
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import DemandKind, FlavorSpec, Reservation, Snapshot, TenantNode
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.fleet import NodeRow, empty_fleet


@dataclass(slots=True)
class Content:
    """Everything by its name, in the order of the file.

    Attributes:
        usage: tenant -> decayed usage at the begin.
        past_use: (tenant, flavor) -> the same by flavor, where it is known.
        reserved: id -> a reservation, still without its nodes, and their names.
        others: as in `Snapshot`.
    """

    cluster: str = ""
    begin_s: float = 0.0
    ratios: tuple[float, ...] = ()
    policy: Policy | None = None
    flavors: dict[str, FlavorSpec] = field(default_factory=dict)
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    tenants: dict[str, TenantNode] = field(default_factory=dict)
    usage: dict[str, float] = field(default_factory=dict)
    past_use: dict[tuple[str, str], float] = field(default_factory=dict)
    throughputs: dict[tuple[str, str], float] = field(default_factory=dict)
    pairs: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    reserved: dict[str, tuple[Reservation, tuple[str, ...]]] = field(default_factory=dict)
    demand: dict[tuple[ReplicaShape, tuple[str, ...]], DemandKind] = field(default_factory=dict)
    jobs: dict[str, SimJob] = field(default_factory=dict)

    def world(self) -> Snapshot:
        """Return the world at the begin."""
        fleet = empty_fleet(self.nodes.values(), list(self.flavors.values()))
        at = {name: n for n, name in enumerate(fleet.node_names)}
        return Snapshot(
            cluster=self.cluster,
            now_s=self.begin_s,
            fleet=fleet,
            pending=(),
            running=(),
            tenants=tuple(self.tenants.values()),
            usage_decayed=self.usage,
            runtime_ratios=self.ratios,
            reservations=tuple(
                replace(one, nodes=tuple(at[name] for name in names))
                for one, names in self.reserved.values()
            ),
            throughputs=self.throughputs,
            demand_mix=tuple(self.demand.values()),
            pairs=self.pairs,
        )
