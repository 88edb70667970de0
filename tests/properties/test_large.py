"""An owner's gang has room made for it on a large fleet exactly where evicting borrowers gives it.

Who holds the fleet is one of these: borrowers who own nothing, of whom any may go; borrowers who
have just started; tenants who hold what they own or less; jobs that may not be evicted. Nodes may
be tainted or cordoned, short of cores, or kept for later. Whoever may go is known by how it was
made, so that the answer is worked out here without the engine: all of them gone, is there a domain
with places for the whole gang, and quota?
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.core.policy import Policy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import JobSpec, Reservation, RunningJob, Snapshot
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

POLICY = Policy(strategy="rules", remedy_depth=0)
LONG_S = 1e6
KINDS = ("lends", "young", "owner", "firm", "none")
OFTEN = (3.0, 0.5, 0.7, 0.5, 0.3)
"""Who holds how much of a fleet: parameters of a Dirichlet distribution."""

GANGS = 0.3
"""Chance that what a borrower holds belongs to its last job of that size."""


@dataclass
class Site:
    """A fleet that is filled node by node.

    Attributes:
        gang: waits.
        held: runs.
        kept: nodes that are kept for later.
        ready, places: rack -> replicas of the gang that have places there now, and once all who may
            go are gone.
        last: devices of a replica -> the last of the borrowers' jobs that may go.
        devices: in all.
        owned, stuck: devices held by their owners, and by borrowers who may not go.
    """

    rng: np.random.Generator
    gang: JobSpec
    fleet: FleetBuilder = field(default_factory=FleetBuilder)
    held: list[RunningJob] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    ready: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    devices: int = 0
    owned: int = 0
    stuck: int = 0

    def add(self, name: str, rack: str, mix: list[float]) -> None:
        """Add one node and who holds it."""
        rng, node = self.rng, len(self.fleet.nodes)
        width, cores = int(rng.choice([1, 2, 4, 8])), int(rng.choice([8, 8, 8, 3]))
        bad = str(rng.choice(["", "", "", "", "", "tainted", "cordoned", "kept"]))
        self.fleet.node(
            name,
            cpu=cores,
            devices=width,
            rack=rack,
            ready=bad != "cordoned",
            note="cordoned" if bad == "cordoned" else "",
            taints=("x",) if bad == "tainted" else (),
        )
        if bad == "kept":
            self.kept.append(node)
        free = [0, 0]  # devices now, and once all who may go are gone
        left = [cores, cores]
        for cells in self._cells(width):
            kind = str(rng.choice(KINDS, p=mix)) if left[0] else "none"
            if kind != "none":
                self._hold(kind, node, cells)
                left[0] -= 1
                left[1] -= kind != "lends"
            free[0] += len(cells) * (kind == "none")
            free[1] += len(cells) * (kind in {"none", "lends"})
        asked = self.gang.shape.devices
        for places, devices, some in zip((self.ready, self.places), free, left, strict=True):
            places[rack] = places.get(rack, 0) + min(devices // asked, some) * (not bad)

    def _cells(self, width: int) -> Iterator[list[int]]:
        """Divide the devices of a new node among its holders."""
        first, self.devices = self.devices, self.devices + width
        while first < self.devices:
            size = min(int(self.rng.choice([1, 1, 2, 4, 8])), self.devices - first)
            yield list(range(first, first + size))
            first += size

    def _hold(self, kind: str, node: int, cells: list[int]) -> None:
        rng, uid = self.rng, f"r{len(self.held):04d}"
        slug = {"lends": "bor", "young": "bor", "owner": "own2", "firm": "firm"}[kind]
        spec = job(uid, tenant=slug, devices=len(cells), limit_s=LONG_S)
        spec = replace(spec, preemptible=kind != "firm")
        ran_s = 100.0 if kind == "young" else float(rng.uniform(1000, 90_000))
        one = running(spec, node, cells, started_s=NOW_S - ran_s)
        if kind == "lends" and rng.random() < GANGS and len(cells) in self.last:
            self._join(self.last[len(cells)], one)
        else:
            self.held.append(one)
            if kind == "lends":
                self.last[len(cells)] = len(self.held) - 1
        self.stuck += len(cells) * (kind == "young")
        self.owned += len(cells) * (kind in {"owner", "firm"})

    def _join(self, at: int, one: RunningJob) -> None:
        """Let what is held be a replica more of a gang that runs, which goes whole or not."""
        replicas = (*self.held[at].replicas, *one.replicas)
        size = len(replicas)
        spec = replace(self.held[at].spec, replicas_min=size, replicas_max=size)
        self.held[at] = replace(self.held[at], spec=spec, replicas=replicas)

    def sums(self, places: dict[str, int]) -> Iterator[int]:
        """Give the places in each domain that the gang could be in."""
        yield from places.values() if self.gang.topology else [sum(places.values())]


def site_of(seed: int, racks: int, per_rack: int, gang: JobSpec) -> Site:
    rng = np.random.default_rng(seed)
    site = Site(rng, gang)
    weights = rng.dirichlet(OFTEN)
    for rack in range(racks):
        for k in range(int(rng.integers(1, per_rack + 1))):
            site.add(f"n{rack:03d}-{k}", f"rack{rack:03d}", weights.tolist())
    return site


def snapshot_of(site: Site, spare: int) -> Snapshot:
    """Own enough for the gang, were all who may go gone, and so many devices more or fewer."""
    owns = site.devices - site.owned
    tree = [tenant("root"), tenant("bor", under="root", a100=0)]
    tree.append(tenant("own", under="root", a100=owns + spare))
    for slug in ("own2", "firm"):
        held = sum(r.spec.shape.devices for r in site.held if r.spec.tenant == slug)
        tree.append(tenant(slug, under="root", a100=held))
    made = world(site.fleet, [site.gang], running=site.held, tenants=tree)
    later = Reservation("later", NOW_S + 4000, NOW_S + LONG_S, tuple(site.kept))
    return replace(made, reservations=(later,) if site.kept else ())


@st.composite
def gangs(draw: st.DrawFn) -> JobSpec:
    return job(
        "gang",
        tenant="own",
        devices=draw(st.sampled_from([1, 2, 4, 8])),
        replicas=draw(st.sampled_from([1, 2, 3, 6, 20])),
        within=draw(st.sampled_from(["", "rack"])),
        limit_s=7200.0,
        submitted_s=NOW_S - 9000,
    )


@settings(max_examples=300, deadline=None)
@given(
    gang=gangs(),
    seed=st.integers(0, 2**32 - 1),
    racks=st.sampled_from([1, 3, 12, 40, 90]),
    per_rack=st.integers(1, 4),
    spare=st.sampled_from([0, 5]),
)
def test_room_is_made_exactly_where_those_who_may_go_leave_enough(
    gang: JobSpec, seed: int, racks: int, per_rack: int, spare: int
) -> None:
    site, wanted = site_of(seed, racks, per_rack, gang), gang.replicas_min
    asked, owns = gang.shape.devices * wanted, site.devices - site.owned + spare
    assume(asked <= owns and max(site.sums(site.ready)) < wanted)
    possible = max(site.sums(site.places)) >= wanted and asked <= owns - site.stuck
    plan = decide(snapshot_of(site, spare), POLICY, now_s=NOW_S, budget_s=10.0)
    assert not plan.starts
    [told] = plan.pending
    assert bool(plan.preempts) == possible
    assert (told.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS) == possible
