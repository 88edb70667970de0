"""What must hold in the database however things break, asked of PostgreSQL itself.

It shares no code with what it checks: sums are SQL's own.
"""

from itertools import pairwise

from django.db import connection

from scheduler.choices import FINAL_STATES, HOLDING_STATES, TRANSITIONS, JobState
from scheduler.models import Job

NONE = {
    "a device gives more than it has": """
        SELECT device.id FROM telemetry_device device
        JOIN scheduler_devicehold hold ON hold.device_id = device.id AND upper_inf(hold.period)
        GROUP BY device.id
        HAVING SUM(hold.gpu_milli) > 1000 OR SUM(hold.memory_mib) > device.memory_mib
            OR (bool_or(hold.exclusive) AND count(*) > 1)""",
    "a node gives more than it has": """
        SELECT node.id FROM telemetry_node node
        JOIN scheduler_replicahold hold ON hold.node_id = node.id AND NOT hold.released
        GROUP BY node.id
        HAVING SUM(hold.cpu_milli) > node.cpu_milli OR SUM(hold.memory_mib) > node.memory_mib""",
    "a node's allocated columns are not the sums of its holds": """
        SELECT node.id FROM telemetry_node node
        LEFT JOIN scheduler_replicahold hold ON hold.node_id = node.id AND NOT hold.released
        GROUP BY node.id
        HAVING node.allocated_cpu_milli <> COALESCE(SUM(hold.cpu_milli), 0)
            OR node.allocated_memory_mib <> COALESCE(SUM(hold.memory_mib), 0)""",
    "a device's allocated columns are not the sums of its holds": """
        SELECT device.id FROM telemetry_device device
        LEFT JOIN scheduler_devicehold hold
            ON hold.device_id = device.id AND upper_inf(hold.period)
        GROUP BY device.id
        HAVING device.allocated_milli <> COALESCE(SUM(hold.gpu_milli), 0)
            OR device.allocated_memory_mib <> COALESCE(SUM(hold.memory_mib), 0)""",
    "a hold is open where its placement is not, or the other way round": """
        SELECT placement.id FROM scheduler_placement placement
        JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
        LEFT JOIN scheduler_devicehold hold ON hold.replica_id = replica.id
        WHERE replica.released <> (placement.released_at IS NOT NULL)
            OR upper_inf(hold.period) <> (placement.released_at IS NULL)""",
    "a gang is not whole": """
        SELECT placement.id FROM scheduler_placement placement
        JOIN scheduler_job job ON job.uid = placement.job_id
        LEFT JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
        GROUP BY placement.id, job.replicas_min, job.replicas_max
        HAVING count(replica.id) NOT BETWEEN job.replicas_min AND job.replicas_max""",
    "a replica holds another number of devices than asked for": """
        SELECT replica.id FROM scheduler_replicahold replica
        JOIN scheduler_placement placement ON placement.id = replica.placement_id
        JOIN scheduler_job job ON job.uid = placement.job_id
        LEFT JOIN scheduler_devicehold hold ON hold.replica_id = replica.id
        GROUP BY replica.id, job.devices HAVING count(hold.id) <> job.devices""",
    "a placement was decided without an intent to start it": """
        SELECT placement.id FROM scheduler_placement placement
        LEFT JOIN scheduler_intent intent
            ON intent.placement_id = placement.id AND intent.verb = 'bind'
        WHERE intent.id IS NULL""",
    "what was held of cores is not what is booked": """
        SELECT placement.id FROM scheduler_placement placement
        JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
        LEFT JOIN scheduler_ledgerentry entry
            ON entry.placement_id = placement.id AND entry.flavor = 'cpu'
        GROUP BY placement.id, entry.id
        HAVING COALESCE(entry.allocated_milli_us, 0) <> COALESCE(SUM(replica.cpu_milli)
            * (EXTRACT(epoch FROM placement.released_at - placement.created_at) * 1000000), 0)""",
    "what was held of devices is not what is booked": """
        SELECT placement.id FROM scheduler_placement placement
        JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
        JOIN scheduler_devicehold hold ON hold.replica_id = replica.id
        LEFT JOIN scheduler_ledgerentry entry
            ON entry.placement_id = placement.id AND entry.flavor = placement.flavor
        GROUP BY placement.id, entry.id
        HAVING COALESCE(entry.allocated_milli_us, 0) <> COALESCE(SUM(hold.gpu_milli)
            * (EXTRACT(epoch FROM placement.released_at - placement.created_at) * 1000000), 0)""",
}
"""What must not be -> a query that finds it."""


def assert_sound(*, jobs: int) -> None:
    """Check every invariant; `jobs` is how many were ever submitted."""
    with connection.cursor() as cursor:
        for what, query in NONE.items():
            cursor.execute(query)
            assert not cursor.fetchall(), what
    rows = list(Job.objects.prefetch_related("placements", "events"))
    assert len(rows) == jobs
    for job in rows:
        _assert_job_sound(job)


def _assert_job_sound(job: Job) -> None:
    placements = sorted(job.placements.all(), key=lambda row: row.attempt)
    still_open = [row for row in placements if row.released_at is None]
    assert [row.attempt for row in placements] == list(range(1, job.attempt + 1))
    if job.state in HOLDING_STATES:
        assert [row.attempt for row in still_open] == [job.attempt], "holds not its own attempt"
    else:
        assert not still_open, f"a job that is {job.state} holds something"
    if job.state in FINAL_STATES:
        assert job.finished_at is not None
    else:
        assert TRANSITIONS[JobState(job.state)], "no way on"
    moves = [e for e in sorted(job.events.all(), key=lambda e: e.pk) if e.kind == "state"]
    assert moves[0].from_state == ""
    assert all(a.to_state == b.from_state for a, b in pairwise(moves)), "a move left no event"
    assert moves[-1].to_state == job.state
