"""The frozen world that a decision is made on.

All sequences are tuples in a stable order, all tables numpy arrays that are read-only. Nothing here
reaches a database, a clock or a socket.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.core.interference import Pairs
from scheduler.core.resources import ReplicaShape
from scheduler.core.throughputs import Throughputs
from scheduler.core.topology import TopologyWish

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def _none() -> BoolArray:
    return np.zeros(0, dtype=np.bool_)


def _not_known() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FlavorSpec:
    """One accelerator model of the fleet.

    Attributes:
        name: slug of the flavor, as in the catalogue.
        compute_units: CU of one device (TFLOPS of dense FP16); None where unknown, never zero.
        memory_mib: memory of one device in MiB.
        power_w: board power in watts; None where unknown.
    """

    name: str
    compute_units: float | None
    memory_mib: int
    power_w: float | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes and devices of one cluster as arrays.

    Free amounts are what is left after every placement that holds something, whatever the health.

    Attributes:
        node_names: (nodes,) unique names, sorted.
        node_cpu_milli, node_memory_mib: (nodes,) capacity.
        node_cpu_free_milli, node_memory_free_mib: (nodes,) free; negative where a node shrank.
        node_ready: (nodes,) reachable, and neither cordoned nor drained: may take new work.
        node_note: (nodes,) why a node is not ready ("" where it is): cordoned, draining, unknown.
        node_taints: (nodes,) taint keys that a job must tolerate.
        node_labels: (nodes,) labels.
        device_uids: (devices,) unique ids; devices are sorted by (node, index on the node).
        device_node: (devices,) index of the node, ascending.
        device_flavor: (devices,) index into `flavors`.
        device_free_milli: (devices,) 0..1000 thousandths not held.
        device_free_memory_mib: (devices,) device memory not held.
        device_memory_mib: (devices,) device memory.
        device_healthy: (devices,) may take new work.
        device_link_group: (devices,) NVLink or HCCS island on the node, -1 = none known.
        flavors: the accelerator models that occur, sorted by name.
        device_numa: (devices,) NUMA node that the device is on, -1 = not known; empty = of none.
        device_nic: (devices,) network card nearest to the device, by a number that is its own on
            the node, -1 = not known; empty = of none.
        device_throttled: (devices,) its hardware slows it down for heat: it keeps what it runs and
            takes nothing new until it has cooled; empty = none. (NVML: HW thermal slowdown halves
            the clocks or worse; more load would heat it more.)
    """

    node_names: tuple[str, ...]
    node_cpu_milli: IntArray
    node_memory_mib: IntArray
    node_cpu_free_milli: IntArray
    node_memory_free_mib: IntArray
    node_ready: BoolArray
    node_note: tuple[str, ...]
    node_taints: tuple[frozenset[str], ...]
    node_labels: tuple[Mapping[str, str], ...]
    device_uids: tuple[str, ...]
    device_node: IntArray
    device_flavor: IntArray
    device_free_milli: IntArray
    device_free_memory_mib: IntArray
    device_memory_mib: IntArray
    device_healthy: BoolArray
    device_link_group: IntArray
    flavors: tuple[FlavorSpec, ...]
    device_numa: IntArray = field(default_factory=_not_known)
    device_nic: IntArray = field(default_factory=_not_known)
    device_throttled: BoolArray = field(default_factory=_none)

    def flavor_held(self, replicas: "Sequence[ReplicaPlacement]") -> str:
        """Return the flavor of the devices that some replicas of a job hold, "" for none."""
        first = next((device for replica in replicas for device in replica.devices), None)
        return "" if first is None else self.flavors[int(self.device_flavor[first])].name


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job as the engine sees it.

    Attributes:
        uid: unique id, the last key of every order.
        tenant: slug of the tenant that is charged.
        kind: training, inference, batch or notebook.
        shape: what each replica takes.
        replicas_min, replicas_max: gang size; equal where the job is not elastic.
        flavors: accelerator flavors allowed, in order of preference; () = any.
        priority: value of the priority class, higher first.
        preemptible: may be evicted for others.
        time_limit_s: walltime in seconds, > 0.
        submitted_s: epoch seconds.
        tolerations: taint keys that the job tolerates.
        hold: why it may not start whatever is free ("" = it may): on_hold, awaiting_approval, ...
        not_before_s: back-off after nodes were lost, or when a promise came to nothing, epoch
            seconds; 0 = none.
        min_throughput: QoS, least normalised throughput in 0..1 that the user accepts; 0 = any.
        promised_s: since when room is being made for it by evicting others, epoch seconds; 0 = none
            is. Jobs with a promise go first, so that what was freed for them is not taken.
        preempted_count: how often it was evicted for others already.
        topology: how near to each other all replicas are to be; None = anywhere.
        placement_wish: pack, spread or one_per_node (a replica never shares a node with another of
            its job); "" = as the policy says.
        job_class: key of `Snapshot.throughputs`; "" = its kind.
        interference: key of `Snapshot.pairs`, for a fraction; "" = shares with anybody.
        anti_affinity: name of a group; jobs of one tenant that name the same one never share a
            node (Nova's server groups of that name, a group being of its tenant); "" = of none.
    """

    uid: str
    tenant: str
    kind: str
    shape: ReplicaShape
    replicas_min: int
    replicas_max: int
    flavors: tuple[str, ...]
    priority: int
    preemptible: bool
    time_limit_s: float
    submitted_s: float
    tolerations: frozenset[str] = frozenset()
    hold: str = ""
    not_before_s: float = 0.0
    min_throughput: float = 0.0
    promised_s: float = 0.0
    preempted_count: int = 0
    topology: TopologyWish | None = None
    placement_wish: str = ""
    job_class: str = ""
    interference: str = ""
    anti_affinity: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaPlacement:
    """Where one replica is: a node and the devices on it.

    Attributes:
        node: index into `Fleet.node_names`.
        devices: indices into `Fleet.device_uids`, all on that node; () for a CPU-only replica.
        gpu_milli: thousandths held of each device.
        gpu_memory_mib: device memory held of each device.
    """

    node: int
    devices: tuple[int, ...]
    gpu_milli: int
    gpu_memory_mib: int


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds its placement, starting or running.

    Attributes:
        spec: what it asked for.
        replicas: what it holds.
        started_s: since when it runs on these replicas, epoch seconds; a resize starts it anew.
        checkpointed_s: up to when its work is safe, epoch seconds; None = evicted, it loses all.
        ending_s: when it will have ended that was told to, epoch seconds; None = it was not told.
        keeps: those of `replicas` that it goes on with after `ending_s`, where it was told to
            shrink; () = it ends, or goes on with all.
    """

    spec: JobSpec
    replicas: tuple[ReplicaPlacement, ...]
    started_s: float
    checkpointed_s: float | None = None
    ending_s: float | None = None
    keeps: tuple[ReplicaPlacement, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """Quota of one tenant for one flavor: milli-devices, or milli-cores for flavor `cpu`.

    Attributes:
        nominal: what the tenant owns.
        borrowing_limit: most that it may take above nominal; None = no limit.
        lending_limit: most of its own that others may take; None = all.
    """

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class TenantNode:
    """One tenant of the tree.

    Attributes:
        slug: unique name.
        parent: slug of the parent, None for a root.
        fair_weight: weight in the division of the surplus, >= 0.
        quotas: flavor -> line; a flavor that no tenant of the whole tree names is not limited,
            one that others name and this tenant does not is not this tenant's to use.
        preemption_fence: jobs below this tenant evict nobody outside its subtree.
        queue_priority: bucket in the division of the surplus among siblings, higher first.
        created_s: epoch seconds; the older of two equals is rounded up.
    """

    slug: str
    parent: str | None
    fair_weight: float
    quotas: Mapping[str, QuotaLine]
    preemption_fence: bool = False
    queue_priority: int = 0
    created_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are set aside for a while; others are planned around it.

    Nobody is started that would still run there by its time limit. Jobs that run there already are
    left alone.

    Attributes:
        id: unique.
        start_s, end_s: from and until when, epoch seconds, start_s < end_s.
        nodes: indices into `Fleet.node_names`.
        tenants: slugs of those whose jobs may use it, with all tenants below them.
        jobs: uids of jobs that may use it. Nobody at all = maintenance.
    """

    id: str
    start_s: float
    end_s: float
    nodes: tuple[int, ...]
    tenants: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()

    @property
    def is_maintenance(self) -> bool:
        """Return whether nobody may use it."""
        return not (self.tenants or self.jobs)


@dataclass(frozen=True, slots=True)
class Expectation:
    """How long a job was expected to wait, and what has become of it.

    Attributes:
        p50_s, p90_s: seconds from when it was said, as planned (`Pending.planned_p50_s`).
        waited_s: seconds from then until it started; until now where it still waits.
        started: it did.
        gang: it has more than one replica.
        told_p90_s: the P90 that it was told, past errors taken into account; inf = none was.
    """

    p50_s: float
    p90_s: float
    waited_s: float
    started: bool
    gang: bool
    told_p90_s: float = math.inf


@dataclass(frozen=True, slots=True)
class DemandKind:
    """A kind of replica that has been asked for lately.

    Attributes:
        shape: what one replica takes.
        flavors: accelerator flavors allowed; () = any.
        count: how many replicas arrived, old ones counting less; > 0.
    """

    shape: ReplicaShape
    flavors: tuple[str, ...]
    count: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that one decision may look at.

    Attributes:
        cluster: slug.
        now_s: epoch seconds of the freeze.
        fleet: nodes and devices.
        pending: jobs that wait, any order.
        running: jobs that hold a placement.
        tenants: the tree, parents before children.
        usage_decayed: tenant -> decayed usage as a fraction of capacity, >= 0.
        runtime_ratios: runtimes of jobs that ended as parts of their time limits, ascending, each
            in 0..1; () = time limits are taken at their word.
        reservations: nodes set aside for a while, any order.
        throughputs: (job class, flavor) -> measured throughput against the class's fastest flavor,
            in 0..1; compute units stand in for what is not measured.
        expectations: of the last jobs that waited, any order; () = plans are taken at their word.
        demand_mix: what has arrived lately, in a stable order, each kind once; for the placements
            that keep room for what is likely to come.
        pairs: how fast classes of fractions run that share a device; a pair of which either runs
            at less than one half never does.
    """

    cluster: str
    now_s: float
    fleet: Fleet
    pending: tuple[JobSpec, ...]
    running: tuple[RunningJob, ...]
    tenants: tuple[TenantNode, ...]
    usage_decayed: Mapping[str, float] = field(default_factory=dict)
    runtime_ratios: tuple[float, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    throughputs: Throughputs = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()
    demand_mix: tuple[DemandKind, ...] = ()
    pairs: Pairs = field(default_factory=dict)
