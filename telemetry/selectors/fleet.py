"""What exists now: clusters, nodes and devices. Every person who is signed in may see it."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import Model, Prefetch, QuerySet

from telemetry.choices import DeviceHealth, NodeState, Scheduling
from telemetry.flavors import BY_SLUG
from telemetry.models import Cluster, Device, Node
from telemetry.recognise import recognise

Viewer = AbstractBaseUser | AnonymousUser
"""Whoever looks; where a selector is given None, the portal itself looks."""
RowT = TypeVar("RowT", bound=Model)

FleetState = dict[str, dict[str, Any]]
"""Key -> row of the live grid; the keys are `node:<name>` and `device:<uid>`."""

_DEVICE_COLUMNS = (
    "uid",
    "node__name",
    "index",
    "vendor",
    "model",
    "mig_profile",
    "flavor",
    "health",
    "allocated_milli",
    "utilised_frac",
    "memory_mib",
    "memory_used_mib",
    "power_w",
    "temperature_c",
    "numa_node",
    "nic",
)


def cluster_list(*, viewer: Viewer | None = None, enabled: bool | None = None) -> QuerySet[Cluster]:
    """Return the clusters by slug; only those that are enabled, or are not, where asked so."""
    rows = _seen_by(viewer, Cluster.objects.order_by("slug"))
    return rows if enabled is None else rows.filter(enabled=enabled)


def cluster_get(slug: str, *, viewer: Viewer | None = None) -> Cluster:
    """Return one cluster.

    Raises:
        Cluster.DoesNotExist: there is none, or the viewer is not signed in.
    """
    if "\x00" in slug:
        raise Cluster.DoesNotExist
    return cluster_list(viewer=viewer).get(slug=slug)


def node_list(*, viewer: Viewer | None = None, cluster: Cluster | None = None) -> QuerySet[Node]:
    """Return nodes with their cluster and devices, of one cluster if named."""
    rows = Node.objects.select_related("cluster").prefetch_related(
        Prefetch("devices", queryset=Device.objects.order_by("index", "uid"))
    )
    rows = _seen_by(viewer, rows.order_by("cluster__slug", "name"))
    return rows if cluster is None else rows.filter(cluster=cluster)


def node_get(*, viewer: Viewer | None = None, cluster: Cluster, name: str) -> Node:
    """Return one node with its devices.

    Raises:
        Node.DoesNotExist: there is none, or the viewer is not signed in.
    """
    if "\x00" in name:
        raise Node.DoesNotExist
    return node_list(viewer=viewer, cluster=cluster).get(name=name)


def device_list(
    *, viewer: Viewer | None = None, cluster: Cluster | None = None
) -> QuerySet[Device]:
    """Return devices with their node and cluster, of one cluster if named."""
    rows = Device.objects.select_related("node__cluster").order_by(
        "node__cluster__slug", "node__name", "index", "uid"
    )
    rows = _seen_by(viewer, rows)
    return rows if cluster is None else rows.filter(node__cluster=cluster)


def flavor_list() -> list[str]:
    """Return the flavors that some device is of, by slug."""
    rows = Device.objects.order_by("flavor").values_list("flavor", flat=True)
    return list(rows.distinct())


def flavor_name(*, flavor: str, vendor: str, model: str, mig_profile: str = "") -> str:
    """Return a flavor's name for people: the catalogue's, or the driver's where it has none."""
    entry = BY_SLUG.get(flavor) or recognise(vendor, model, mig_profile)[1]
    return entry.name if entry is not None else model or flavor


def node_state(*, state: str, scheduling: str) -> str:
    """Return ready, cordoned, draining or unknown: what the page shows of a node."""
    if state == NodeState.UNKNOWN:
        return "unknown"
    return "ready" if scheduling == Scheduling.OPEN else scheduling


def fleet_state(cluster: Cluster) -> FleetState:
    """Return the rows of the live grid; who holds what is for the scheduler to fill in."""
    nodes = Node.objects.filter(cluster=cluster).order_by("name")
    rows = {f"node:{node['name']}": _node_row(node, cluster) for node in nodes.values()}
    devices = Device.objects.filter(node__cluster=cluster).order_by("node__name", "index", "uid")
    for device in devices.values(*_DEVICE_COLUMNS):
        key = f"device:{device['uid']}"
        # A device that moved to another node is lost on the old one: the new one's row wins.
        if key not in rows or device["health"] != DeviceHealth.LOST:
            rows[key] = _device_row(device)
    return rows


def _seen_by(viewer: Viewer | None, rows: QuerySet[RowT]) -> QuerySet[RowT]:
    if viewer is None or (viewer.is_authenticated and viewer.is_active):
        return rows
    return rows.none()


def _node_row(node: Mapping[str, Any], cluster: Cluster) -> dict[str, Any]:
    return {
        "kind": "node",
        "name": node["name"],
        "state": node_state(state=node["state"], scheduling=node["scheduling"]),
        "cpu_milli": node["cpu_milli"],
        "cpu_allocated_milli": node["allocated_cpu_milli"],
        "cpu_utilised_frac": node["cpu_utilised_frac"],
        "memory_mib": node["memory_mib"],
        "memory_allocated_mib": node["allocated_memory_mib"],
        "memory_used_mib": node["memory_used_mib"],
        "seen_at": None if node["seen_at"] is None else node["seen_at"].isoformat(),
        "simulated": cluster.is_simulated,
    }


def _device_row(device: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": "device",
        "uid": device["uid"],
        "node": device["node__name"],
        "index": device["index"],
        "flavor": device["flavor"],
        "flavor_name": flavor_name(
            flavor=device["flavor"],
            vendor=device["vendor"],
            model=device["model"],
            mig_profile=device["mig_profile"],
        ),
        "health": device["health"],
        "allocated_milli": device["allocated_milli"],
        "utilised_frac": device["utilised_frac"],
        "memory_mib": device["memory_mib"],
        "memory_used_mib": device["memory_used_mib"],
        "power_w": device["power_w"],
        "temperature_c": device["temperature_c"],
        "numa_node": device["numa_node"],
        "nic": device["nic"],
        "holders": [],
    }
