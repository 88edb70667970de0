"""What PostgreSQL itself enforces: no device or node is over-allocated, books are never rewritten.

The update of the node's or device's row takes its lock, so two transactions can't both fit into
the last free part. DESIGN section 5, number 1.
"""

from django.db import migrations

CREATE = """
CREATE FUNCTION kilter_replica_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.node_id, NEW.cpu_milli, NEW.memory_mib, NEW.placement_id)
            IS DISTINCT FROM (OLD.node_id, OLD.cpu_milli, OLD.memory_mib, OLD.placement_id) THEN
        RAISE EXCEPTION 'what a replica holds never changes' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'replica_hold_immutable';
    END IF;
    IF TG_OP IN ('UPDATE', 'DELETE') AND NOT OLD.released THEN
        UPDATE telemetry_node SET allocated_cpu_milli = allocated_cpu_milli - OLD.cpu_milli,
            allocated_memory_mib = allocated_memory_mib - OLD.memory_mib
        WHERE id = OLD.node_id;
    END IF;
    IF TG_OP IN ('UPDATE', 'INSERT') AND NOT NEW.released THEN
        UPDATE telemetry_node SET allocated_cpu_milli = allocated_cpu_milli + NEW.cpu_milli,
            allocated_memory_mib = allocated_memory_mib + NEW.memory_mib
        WHERE id = NEW.node_id
            AND allocated_cpu_milli + NEW.cpu_milli <= cpu_milli
            AND allocated_memory_mib + NEW.memory_mib <= memory_mib;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'node % has no room for % milli-cores and % MiB', NEW.node_id,
                NEW.cpu_milli, NEW.memory_mib USING ERRCODE = 'check_violation',
                CONSTRAINT = 'node_allocated_fits';
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER replica_hold_counts AFTER INSERT OR UPDATE OR DELETE ON scheduler_replicahold
    FOR EACH ROW EXECUTE FUNCTION kilter_replica_hold();

CREATE FUNCTION kilter_device_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.device_id, NEW.gpu_milli, NEW.memory_mib, lower(NEW.period))
            IS DISTINCT FROM (OLD.device_id, OLD.gpu_milli, OLD.memory_mib, lower(OLD.period)) THEN
        RAISE EXCEPTION 'what a replica holds never changes' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'device_hold_immutable';
    END IF;
    IF TG_OP IN ('UPDATE', 'DELETE') AND upper_inf(OLD.period) THEN
        UPDATE telemetry_device SET allocated_milli = allocated_milli - OLD.gpu_milli,
            allocated_memory_mib = allocated_memory_mib - OLD.memory_mib
        WHERE id = OLD.device_id;
    END IF;
    IF TG_OP IN ('UPDATE', 'INSERT') AND upper_inf(NEW.period) THEN
        UPDATE telemetry_device SET allocated_milli = allocated_milli + NEW.gpu_milli,
            allocated_memory_mib = allocated_memory_mib + NEW.memory_mib
        WHERE id = NEW.device_id;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER device_hold_counts AFTER INSERT OR UPDATE OR DELETE ON scheduler_devicehold
    FOR EACH ROW EXECUTE FUNCTION kilter_device_hold();

CREATE FUNCTION kilter_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON scheduler_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION kilter_append_only();
CREATE TRIGGER job_event_append_only BEFORE UPDATE OR DELETE ON scheduler_jobevent
    FOR EACH ROW EXECUTE FUNCTION kilter_append_only();
"""

DROP = """
DROP TRIGGER job_event_append_only ON scheduler_jobevent;
DROP TRIGGER ledger_append_only ON scheduler_ledgerentry;
DROP FUNCTION kilter_append_only();
DROP TRIGGER device_hold_counts ON scheduler_devicehold;
DROP FUNCTION kilter_device_hold();
DROP TRIGGER replica_hold_counts ON scheduler_replicahold;
DROP FUNCTION kilter_replica_hold();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0001_initial")]

    operations = [migrations.RunSQL(CREATE, DROP)]
