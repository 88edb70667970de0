"""Small simulated worlds."""

from dataclasses import replace

from scheduler.core.snapshot import Snapshot
from scheduler.simulate.jobs import SimJob
from tests.builders import FleetBuilder, job, world

BEGIN_S = 0.0


def site(*, nodes: int = 1, devices: int = 1, flavor: str = "a100", tenants=None) -> Snapshot:
    fleet = FleetBuilder()
    for n in range(nodes):
        fleet.node(f"n{n}", devices=devices, flavor=flavor)
    owners = ["t"] if tenants is None else tenants
    made = world(fleet, [job("x", tenant=t) for t in owners if isinstance(t, str)], now_s=BEGIN_S)
    return replace(made, pending=())


def work(uid: str, at_s: float, work_s: float, **kw) -> SimJob:
    """A job of one device that arrives at `at_s` and needs `work_s` seconds."""
    own = {
        name: kw.pop(name)
        for name in (
            "throughput",
            "scaling",
            "startup_s",
            "checkpoint_every_s",
            "saves_when_told",
            "fails_after_s",
        )
        if name in kw
    }
    spec = job(uid, submitted_s=at_s, **{"devices": 1, "limit_s": 1e6, **kw})
    return SimJob(spec, work_s, **own)
