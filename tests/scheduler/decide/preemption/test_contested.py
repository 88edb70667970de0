"""What elastic jobs leave to those that wait."""

from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.preemption.contested import MOST_DEMANDS
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world
from tests.scheduler.decide.preemption.test_growth import alone, elastic

RULES = Policy(strategy="rules")


def replicas_of(snapshot: Snapshot) -> int:
    """Return how many replicas e has after the plan, 0 where it keeps those it has."""
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=1.0)
    assert plan.solver.status != "error", plan.solver.note
    return sum(len(resize.replicas) for resize in plan.resizes if resize.uid == "e")


@pytest.mark.parametrize(("cores", "replicas"), [(16, 0), (32, 3)])
def test_a_job_with_devices_leaves_its_cores_to_one_without_that_could_use_the_node(
    cores: int, replicas: int
) -> None:
    """e and x hold 1 + 12 of 24 cores: w gets its 16 when x ends. 32 it can't ever have here.

    n2 has 64, all of which are held: w may run at all, and keeps e from nothing there.
    """
    fleet = FleetBuilder().node("n1", cpu=24, devices=4).node("n2", cpu=64)
    runs = [
        elastic(),
        running(job("x", tenant="v", cpu=12, limit_s=900), 0),
        running(job("y", tenant="v", cpu=64, limit_s=90_000), 1),
    ]
    waits = job("w", tenant="u", cpu=cores)
    assert replicas_of(world(fleet, [waits], running=runs)) == replicas


@pytest.mark.parametrize(("node", "replicas"), [(1, 3), (0, 0)])
def test_a_job_leaves_its_cores_to_one_that_waits_for_other_devices_of_the_same_node(
    node: int, replicas: int
) -> None:
    """The only h100 is held; w waits for it and needs cores, too, wherever it is."""
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=1, flavor="h100")
    x = running(job("x", tenant="v", devices=1, limit_s=9000), node, (4,))
    waits = job("w", tenant="u", devices=1, flavors=["h100"])
    apart = world(fleet, [waits], running=[elastic(), x])
    where = np.array([0, 0, 0, 0, node])
    mixed = replace(apart, fleet=replace(apart.fleet, device_node=where))
    assert replicas_of(mixed) == replicas


@pytest.mark.parametrize(("begins_s", "replicas"), [(85_699, 0), (85_700, 3)])
def test_a_job_leaves_its_place_to_one_that_backs_off_until_before_its_own_time_is_up(
    begins_s: float, replicas: int
) -> None:
    """e has run for 700 of 86,400 s."""
    waits = job("w", tenant="u", devices=4, not_before_s=NOW_S + begins_s)
    fleet = FleetBuilder().node("n1", devices=4)
    assert replicas_of(world(fleet, [waits], running=[elastic()])) == replicas


def test_a_job_leaves_its_own_tenants_quota_to_one_that_backs_off() -> None:
    """t owns 4: e has 1 and w will take 3."""
    for_later = job("w", devices=3, not_before_s=NOW_S + 20)
    assert replicas_of(alone(elastic(), for_later)) == 0
    assert replicas_of(alone(elastic(), for_later, quota=99)) == 0  # the place
    assert replicas_of(alone(elastic(), job("w", devices=3, hold="user"))) == 3


@pytest.mark.parametrize(("others", "replicas"), [(MOST_DEMANDS - 1, 3), (MOST_DEMANDS, 0)])
def test_many_demands_of_those_that_wait_count_as_the_least_that_any_needs(
    others: int, replicas: int
) -> None:
    """None fits n1 with its 4 devices and 512,000 MiB: the wide one needs 8, the large one 600,000.

    Both are beyond the limit, or one of them: together they are one device and 1,000 MiB.
    """
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=8, memory_mib=700_000)
    full = tuple(ReplicaPlacement(1, (k,), 1000, 80_000) for k in range(4, 12))
    busy = RunningJob(job("b", devices=1, replicas=8, limit_s=7200), full, NOW_S)
    queue: list[JobSpec] = [
        job(f"q{k}", devices=8, memory_mib=2000 + k, priority=1) for k in range(others)
    ]
    queue += [job("wide", devices=8), job("large", devices=1, memory_mib=600_000)]
    tree = [tenant("t", a100=99)]
    assert replicas_of(world(fleet, queue, running=[elastic(), busy], tenants=tree)) == replicas
