"""Invented sites: teams that come in bursts to a fleet of equal nodes; one seed, one trace."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import FlavorSpec, JobSpec, QuotaLine, Snapshot, TenantNode
from scheduler.simulate.errors import InvalidSimulationError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.exported import Trace
from scheduler.simulate.traces.fleet import NodeRow, empty_fleet

FLAVOR = FlavorSpec("a100-80gb", 312.0, 81_920, 400.0)
PER_NODE = 8
CPU_MILLI, MEMORY_MIB = 128_000, 1_048_576
BURST_DAYS = 2.0
"""A team is busy or quiet for about so long, and asks for three times as much while it is busy."""

_DEVICES = (0, 1, 1, 1, 1, 2, 2, 4, 8)
_MEDIAN_WORK_S, _SPREAD = 3600.0, 1.2  # long-tailed, as run times are
_DAY_S = 86400.0
_MOST = {"nodes": 100_000, "tenants": 10_000, "days": 3660.0, "load": 100.0}


@dataclass(frozen=True, slots=True)
class Site:
    """What is invented.

    Attributes:
        nodes: of eight devices each, >= 1.
        tenants: teams below one root, >= 1; their quotas are as equal as whole devices allow.
        days: for which jobs arrive, > 0.
        load: what all ask for as a part of the devices' time, > 0.
    """

    nodes: int = 4
    tenants: int = 4
    days: float = 7.0
    load: float = 1.0

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            if not 0 < getattr(self, name) <= most:
                raise InvalidSimulationError(f"{name} of an invented site is not in 0..{most:g}")


def synthetic(site: Site, rng: np.random.Generator) -> Trace:
    """Return a fleet, its tenants and their jobs.

    Each team's jobs arrive as a Poisson process whose rate changes between quiet and busy; run
    times are lognormal, time limits between one and four times as long.
    """
    rows = [
        NodeRow(f"node-{n:05d}", CPU_MILLI, MEMORY_MIB, (FLAVOR.name,) * PER_NODE)
        for n in range(site.nodes)
    ]
    teams = [f"team-{t:02d}" for t in range(site.tenants)]
    world = Snapshot(
        "synthetic", 0.0, empty_fleet(rows, [FLAVOR]), (), (), tuple(_tenants(site, teams))
    )
    jobs = [job for team in teams for job in _jobs(site, team, rng)]
    return Trace(world, tuple(jobs))


def _tenants(site: Site, teams: list[str]) -> Iterator[TenantNode]:
    devices = _parts(WHOLE_MILLI * PER_NODE * site.nodes, len(teams))
    cores = _parts(CPU_MILLI * site.nodes, len(teams))
    yield TenantNode("all", None, 1.0, {FLAVOR.name: QuotaLine(0), CPU_FLAVOR: QuotaLine(0)})
    for team, device_milli, cpu_milli in zip(teams, devices, cores, strict=True):
        own = {FLAVOR.name: QuotaLine(device_milli), CPU_FLAVOR: QuotaLine(cpu_milli)}
        yield TenantNode(team, "all", 1.0, own)


def _parts(milli: int, count: int) -> list[int]:
    """Return thousandths in parts as equal as can be that add up to all of them.

    The parts are whole where there are enough for one each: a third of a device runs no job, and
    what is rounded away nobody could borrow.
    """
    unit = WHOLE_MILLI if milli >= WHOLE_MILLI * count else 1
    each, more = divmod(milli // unit, count)
    return [unit * (each + (k < more)) for k in range(count)]


def _jobs(site: Site, team: str, rng: np.random.Generator) -> Iterator[SimJob]:
    mean_work_s = _MEDIAN_WORK_S * float(np.exp(_SPREAD**2 / 2))
    mean_device_s = mean_work_s * float(np.mean(_DEVICES))
    rate = site.load * PER_NODE * site.nodes / site.tenants / mean_device_s
    at_s, number, busy = 0.0, 0, bool(rng.random() < 0.5)  # noqa: PLR2004 - either
    turns_s = float(rng.exponential(BURST_DAYS * _DAY_S))
    while True:
        gap_s = float(rng.exponential(1.0 / (rate * (1.5 if busy else 0.5))))
        if at_s + gap_s >= turns_s:
            at_s, busy = turns_s, not busy
            turns_s += float(rng.exponential(BURST_DAYS * _DAY_S))
        else:
            at_s += gap_s
            if at_s >= site.days * _DAY_S:
                return
            yield _job(f"{team}-{number:06d}", team, at_s, rng)
            number += 1
        if at_s >= site.days * _DAY_S:
            return


def _job(uid: str, team: str, at_s: float, rng: np.random.Generator) -> SimJob:
    devices = int(rng.choice(_DEVICES))
    work_s = max(1.0, float(rng.lognormal(np.log(_MEDIAN_WORK_S), _SPREAD)))
    spec = JobSpec(
        uid=uid,
        tenant=team,
        kind="training" if devices else "batch",
        shape=ReplicaShape(4000 * max(devices, 1), 32_768 * max(devices, 1), devices),
        replicas_min=1,
        replicas_max=1,
        flavors=(),
        priority=int(rng.choice([0, 0, 0, 1])),
        preemptible=True,
        time_limit_s=work_s * float(rng.uniform(1.0, 4.0)),
        submitted_s=at_s,
    )
    return SimJob(spec, work_s, checkpoint_every_s=1800.0 if devices else 0.0)
