"""All reading of telemetry: the fleet as it is, and series over time."""

from telemetry.selectors.fleet import (
    FleetState,
    cluster_get,
    cluster_list,
    device_list,
    flavor_list,
    flavor_name,
    fleet_state,
    node_get,
    node_list,
    node_state,
)
from telemetry.selectors.means import devices_utilised_mean, job_cores_mean
from telemetry.selectors.series import (
    SeriesPoint,
    cpu_series,
    device_series,
    job_series,
    node_series,
    utilisation_series,
)

__all__ = [
    "FleetState",
    "SeriesPoint",
    "cluster_get",
    "cluster_list",
    "cpu_series",
    "device_list",
    "device_series",
    "devices_utilised_mean",
    "flavor_list",
    "flavor_name",
    "fleet_state",
    "job_cores_mean",
    "job_series",
    "node_get",
    "node_list",
    "node_series",
    "node_state",
    "utilisation_series",
]
