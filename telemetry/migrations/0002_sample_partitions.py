"""The table of samples: partitioned by day, filled by COPY."""

from django.db import migrations

CREATE = """
CREATE TABLE telemetry_sample (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    cluster_id bigint NOT NULL,
    node_id bigint,
    device_id bigint,
    job_uid uuid,
    utilised_frac double precision,
    allocated_frac double precision,
    memory_used_mib bigint,
    power_w double precision,
    temperature_c double precision
) PARTITION BY RANGE (at);
CREATE INDEX telemetry_sample_cluster_at ON telemetry_sample (cluster_id, at);
CREATE INDEX telemetry_sample_device_at ON telemetry_sample (device_id, at) WHERE device_id IS NOT NULL;
CREATE INDEX telemetry_sample_job_at ON telemetry_sample (job_uid, at) WHERE job_uid IS NOT NULL;
CREATE TABLE telemetry_sample_default PARTITION OF telemetry_sample DEFAULT;
"""


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, "DROP TABLE telemetry_sample")]
