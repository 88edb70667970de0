"""What a trace carries is all that decisions look at, whatever the world."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.snapshot import Snapshot
from scheduler.decide import cycle
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.exported import Trace, read_trace, write_trace
from scheduler.simulate.traces.fleet import all_free
from tests.builders import NOW_S
from tests.properties.wide import a_policy, wide_world


def begun(seed: int) -> Snapshot:
    """Return a world before anything runs; nobody asks who is of no tenant."""
    made = wide_world(seed)
    slugs = {tenant.slug for tenant in made.tenants}
    return replace(
        made,
        fleet=all_free(made.fleet),
        pending=tuple(job for job in made.pending if job.tenant in slugs),
        running=(),
        expectations=(),
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**40))
def test_a_world_that_was_written_and_read_is_decided_alike(seed: int) -> None:
    snapshot, policy = begun(seed), a_policy(seed)
    jobs = tuple(SimJob(job, 1.0) for job in snapshot.pending)
    early = replace(
        snapshot, pending=(), now_s=min([NOW_S, *(j.submitted_s for j in snapshot.pending)])
    )
    back = read_trace(write_trace(Trace(early, jobs, policy)), "back")
    assert back.policy == policy
    again = replace(back.world, pending=tuple(job.spec for job in back.jobs), now_s=NOW_S)
    first, second = (
        cycle.decide(one, policy, now_s=NOW_S, budget_s=1.0) for one in (snapshot, again)
    )
    assert sorted(first.pending, key=lambda one: one.uid) == sorted(
        second.pending, key=lambda one: one.uid
    )
    assert replace(first, pending=()) == replace(second, pending=())
