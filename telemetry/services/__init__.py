"""All writing of telemetry: readings into rows and samples, rollups, and what admins set."""

from telemetry.services.intake import IngestReport, ingest
from telemetry.services.keeping import retain, roll_up, samples_partition
from telemetry.services.nodes import node_cordon, node_drain, node_uncordon
from telemetry.services.samples import samples_write, write_job_samples
from telemetry.services.sampling import sample_cluster

__all__ = [
    "IngestReport",
    "ingest",
    "node_cordon",
    "node_drain",
    "node_uncordon",
    "retain",
    "roll_up",
    "sample_cluster",
    "samples_partition",
    "samples_write",
    "write_job_samples",
]
