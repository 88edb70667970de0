"""One cycle's working state: what is left, what may be used, what was decided so far.

A session starts from a snapshot and is changed by `start` and `reserve` only. Counts and scores are
cached per kind of replica and window, and only the nodes that were touched are counted again.
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scheduler.core.policy import Policy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import IntArray, JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.core.topology import WITHIN_NODE, TopologyWish
from scheduler.decide.allowance import Allowance
from scheduler.decide.apart import Apart
from scheduler.decide.backfill import Hold, Profile, release_foes
from scheduler.decide.calendar import Calendar
from scheduler.decide.counts import Counted, Counts, Pool, remember
from scheduler.decide.feasibility import ANY, Demand, Filter, Free, Layout, flavor_index
from scheduler.decide.foes import Foes, met_pairs
from scheduler.decide.holdings import Ends, Holdings, by_limit, without
from scheduler.decide.kinds import Kind, Kinds
from scheduler.decide.moments import grid_of
from scheduler.decide.placement import Fit, Site, place
from scheduler.decide.power import PowerCap
from scheduler.decide.quota import Charge, QuotaTree
from scheduler.decide.scoring import SCORES, Scorer
from scheduler.decide.topology import narrowed, reach

WHATEVER_RESERVED_S = -math.inf
"""End of a run that may use what is reserved for others, for `Calendar.closed`."""

LEAST_NOTICE_S = 1.0
"""However short the grace, nobody is gone at the moment in which it is told to go."""


class Shortage(NamedTuple):
    """What is wrong with the free capacity for a kind of job.

    Attributes:
        code: the reason.
        evidence: its numbers.
        replicas: how many would fit now, whatever is reserved.
    """

    code: WaitReason
    evidence: Mapping[str, object]
    replicas: int


class Session:
    """The state of one cycle.

    Attributes:
        profile: capacity and quota over time.
        grid: when its rows begin, whatever is planned.
        allowance: what quota and power cap leave on it.
        power: the cap on board power.
        counts: what was counted on it.
        tree: the compiled quota tree.
        explained: kind and flavors -> version of the profile, and what was found of it then.
        free_at_start: what was free before anything was decided.
        held: all that runs or was started in this cycle, and what it holds.
        calendar: reservations and maintenance.
        apart: where jobs are that keep others of their group away.
        kinds: what jobs may use, for all of a kind at once.
        possible: kind, tenant and whether preemptible of jobs that may run some day.
        notice_s: when a job is gone that is told to end now, epoch seconds after now.
    """

    def __init__(self, snapshot: Snapshot, policy: Policy, *, now_s: float) -> None:
        self.snapshot, self.policy, self.now_s = snapshot, policy, now_s
        self.layout = Layout(snapshot.fleet, Foes(met_pairs(snapshot)))
        self.tree = QuotaTree(snapshot.tenants)
        self.flavor_of: Mapping[str, int] = flavor_index(snapshot.fleet)
        self._names = tuple(flavor.name for flavor in snapshot.fleet.flavors)
        self._filters: dict[Demand, Filter] = {}
        self._rooms: dict[tuple[Demand, TopologyWish | None], int] = {}
        self.calendar = Calendar(snapshot.reservations, self.tree, now_s=now_s)
        self.kinds = Kinds(snapshot.fleet, self.calendar, snapshot.throughputs, self.layout.foes)
        self.possible: set[tuple[Kind, str, bool]] = set()
        self._scorers: dict[str, Scorer] = {}
        self.scorer("")
        self.held = Holdings(snapshot, self.layout, self.tree, now_s=now_s)
        self.power = PowerCap(policy.power_cap_w, snapshot.fleet.flavors)
        self.notice_s = now_s + max(policy.preemption.grace_s, LEAST_NOTICE_S)
        self.free_at_start = self.layout.free_now(snapshot.fleet)
        release_foes(self.free_at_start.foes, self.held.cells(), self.layout.foes, sign=-1)
        self.plan_from(self.free_at_start, by_limit(now_s))

    def scorer(self, wish: str) -> Scorer:
        """Return what chooses among the places that fit: as wished, "" = as the policy says."""
        placement = wish or self.policy.placement
        if placement not in self._scorers:
            self._scorers[placement] = SCORES[placement](self.snapshot, self.layout)
        return self._scorers[placement]

    def plan_from(self, free: Free, ends: Ends, idle_uw: int = 0) -> None:
        """Begin a profile; whatever was counted on another one is forgotten.

        Args:
            free: what is free now.
            ends: says when each job that runs or was started in this cycle ends.
            idle_uw: board power of what is not free although nothing runs there, microwatts.
        """
        cells, ends_s = self.held.cells(), self.held.ends_s(ends)
        self.grid = grid_of(ends_s, self.held.leaving_s(), self.calendar, now_s=self.now_s)
        notice = (self.notice_s,) if ends_s and allows_any(self.policy) else ()
        self.profile = Profile(
            self.layout,
            free,
            self.tree,
            cells,
            ends_s,
            now_s=self.now_s,
            grid=self.grid.times_s,
            exact=notice,
            board=self.power.grid_mw(self.layout.flavor),
            idle_uw=idle_uw,
        )
        self.counts = Counts(self.profile, self.scorer)
        self.allowance = Allowance(
            self.snapshot.tenants, self.tree, self.charges, self.power, self.profile
        )
        self.apart = Apart()
        for one, end_s in zip(self.held.active, ends_s, strict=True):
            self.allowance.note(one.job, one.hold, self.now_s, end_s)
            self.apart.note(one.job, one.hold.replicas, self.now_s, end_s)
        self.no_earlier: dict[Kind, float] = {}
        self.explained: dict[tuple[Kind, tuple[int, ...]], tuple[int, Shortage]] = {}
        self._full: dict[Kind, float] = {}  # nothing frees within a cycle: no need to try again

    def with_ends(self, ends: Ends) -> "Session":
        """Return this session on a profile of its own, on which nothing is reserved.

        For planning only: jobs that it would start are not to be taken on it.

        Args:
            ends: says when each job that runs or was started in this cycle ends.
        """
        other = copy(self)
        other.plan_from(self.profile.row(0), ends, self.profile.idle_uw)
        return other

    # -- what a job may use -------------------------------------------------------------------

    def flavor_name(self, flavor: int) -> str:
        """Return the name of a flavor index, "" for none."""
        return "" if flavor == ANY else self._names[flavor]

    def allowed(self, job: JobSpec) -> tuple[int, ...]:
        """Return the flavors that a job may use, best first; (ANY,) for a job without devices."""
        return self.kind(job).allowed

    def kind(self, job: JobSpec) -> Kind:
        """Return what the job has in common with others that need the same places."""
        return self.kinds.of(job)

    def charges(self, job: JobSpec, flavor: int, replicas: int) -> tuple[Charge, ...]:
        """Return what the tenant is charged for that many replicas."""
        return self.held.charges(job, flavor, replicas)

    def hold_of(self, job: RunningJob) -> Hold:
        """Return what a running job holds."""
        return self.held.hold_of(job)

    def filter(self, demand: Demand) -> Filter:
        """Return the ready-made filter of a demand."""
        found = self._filters.get(demand)
        if found is None:
            found = Filter(self.layout, demand)
            remember(self._filters, demand, found)
        return found

    def demand(self, job: JobSpec, flavor: int, *, whatever_health: bool = False) -> Demand:
        """Return the demand of one replica on one flavor."""
        return self.kinds.demand(job, flavor, whatever_health=whatever_health)

    def empty_room(self, job: JobSpec, flavor: int) -> int:
        """Return how many replicas the empty cluster would hold, whatever the health now."""
        demand = self.demand(job, flavor, whatever_health=True)
        key = (demand, job.topology)
        if key not in self._rooms:
            counts = self.filter(demand).count(self.layout.capacity)
            self._rooms[key] = reach(self.layout, counts, job.topology)
        return self._rooms[key]

    # -- now ----------------------------------------------------------------------------------

    def window(self, end_s: float) -> int:
        """Return the number of rows that a job which starts now and ends then must fit into."""
        if end_s <= self.profile.first_reserved_s:
            return 1  # nobody takes anything later, so row 0 is the tightest
        return self.profile.until(end_s)

    def closed(self, kind: Kind, begin_s: float, end_s: float) -> IntArray:
        """Return the nodes that a run in [begin_s, end_s) must not use, ascending.

        They are reserved for others then, or a job of the same group is there, to be kept apart.
        With an end before the begin, whatever is reserved.
        """
        reserved = self.calendar.closed(kind.mine, begin_s, end_s)
        if kind.apart is None:
            return reserved
        return np.union1d(reserved, self.apart.closed(kind.apart, begin_s, end_s))

    def room_now(
        self, job: JobSpec, flavor: int, rows: int, end_s: float = WHATEVER_RESERVED_S
    ) -> int:
        """Return how many replicas fit now for so many rows, on what is not reserved by `end_s`.

        Where the job requires a topology, that is what the roomiest domain takes.
        """
        counted = self.counted(self.demand(job, flavor), rows)
        closed = self.closed(self.kind(job), self.now_s, end_s)
        if job.topology:
            return reach(self.layout, _without(counted.counts, closed), job.topology)
        return counted.total - int(counted.counts[closed].sum()) if len(closed) else counted.total

    def fit_now(
        self,
        job: JobSpec,
        flavors: Sequence[int] | None = None,
        *,
        rows: int | None = None,
        whatever_reserved: bool = False,
    ) -> Fit | None:
        """Return the best way to start a job now, None if there is none.

        As many replicas as possible, of a measured elastic job the most throughput; then by flavor.

        Args:
            job: the job, admissible.
            flavors: to choose from; the allowed ones by default.
            rows: rows that it must fit into; up to its end by default.
            whatever_reserved: use nodes that are reserved or in maintenance, too.
        """
        ordinary = flavors is None and rows is None
        kind = self.kind(job)
        if ordinary and job.time_limit_s >= self._full.get(kind, math.inf):
            return None
        end_s = self._until(job, rows, whatever_reserved=whatever_reserved)
        last = rows or self.window(end_s)
        best: Fit | None = None
        most, least = 0.0, max(job.replicas_min, 1)
        full = ordinary  # until quota was in the way somewhere
        choice = self.allowed(job) if flavors is None else flavors
        for flavor in self.allowance.own_first(job, choice):
            speed = self.kinds.speed(job, flavor)
            replicas = self.allowance.replicas(job, flavor, 0, last)
            if replicas < least or replicas * speed <= most:
                full = False
                continue
            replicas = min(replicas, self.room_now(job, flavor, last, end_s))
            if replicas >= least and replicas * speed > most:
                site = self._site(job, flavor, replicas, last, end_s)
                best, most = Fit(flavor, replicas, self.now_s, site), replicas * speed
                if replicas == job.replicas_max and speed == 1:
                    break
        if full and best is None:
            self._full[kind] = job.time_limit_s
        return best

    def counted(self, demand: Demand, rows: int) -> Counted:
        """Return how many replicas of a demand could start now, node by node and in sum."""
        return self.counts.counted(demand, self.filter(demand), rows)

    def pool(self, demand: Demand) -> Pool:
        """Return what is free now of all that a demand may use."""
        return self.counts.pool(demand, self.filter(demand))

    def site(self, demand: Demand, rows: int) -> Site:
        """Return what a placement that starts now is chosen from."""
        return self.counts.site(demand, self.filter(demand), rows)

    def _until(self, job: JobSpec, rows: int | None, *, whatever_reserved: bool) -> float:
        """Return until when nodes must not be reserved for a job that starts now."""
        if whatever_reserved:
            return WHATEVER_RESERVED_S
        times = self.profile.times
        by_rows_s = times[rows] if rows and rows < len(times) else math.inf
        return min(by_rows_s, self.now_s + job.time_limit_s)

    def _site(self, job: JobSpec, flavor: int, replicas: int, rows: int, end_s: float) -> Site:
        """Return what so many replicas are placed on: the nearest domains that the job wishes."""
        demand, wish = self.demand(job, flavor), job.topology
        site = self._open_site(job, demand, rows, end_s)
        if wish is None:
            return site
        if wish.level in WITHIN_NODE and not wish.required:
            island = self._open_site(job, replace(demand, within=wish.level), rows, end_s)
            site = island if island.counts.max(initial=0) >= replicas else site
        return site._replace(counts=self.narrowed(job, site.counts, site.first, replicas))

    def narrowed(self, job: JobSpec, counts: IntArray, first: IntArray, replicas: int) -> IntArray:
        """Return the counts of the nearest domains, those of the first nodes where they will do.

        Args:
            job: with its wish of topology.
            counts: (nodes,) replicas that each node takes.
            first: nodes that are taken before all others.
            replicas: how many are to stand near each other.
        """
        if job.topology is None:
            return counts
        inside = np.zeros_like(counts)
        inside[first] = counts[first]
        enough = len(first) and reach(self.layout, inside, job.topology) >= replicas
        return narrowed(self.layout, inside if enough else counts, job.topology, replicas)

    def _open_site(self, job: JobSpec, demand: Demand, rows: int, end_s: float) -> Site:
        site, mine = self.site(demand, rows), self.kind(job).mine
        if mine:
            site = site._replace(first=self.calendar.kept(mine, self.now_s, end_s))
        closed = self.closed(self.kind(job), self.now_s, end_s)
        return site._replace(counts=_without(site.counts, closed)) if len(closed) else site

    # -- taking -------------------------------------------------------------------------------

    def take(self, job: JobSpec, fit: Fit) -> tuple[tuple[ReplicaPlacement, ...], float]:
        """Place a fit, hold it until the job's time limit, and return the placements and score."""
        replicas, score = place(fit.site, fit.replicas, self._placement(job))
        charges = self.charges(job, fit.flavor, fit.replicas)
        hold = Hold(job.tenant, charges, job.shape, replicas, self.layout.foes.of(job))
        self.profile.hold(hold, fit.start_s, fit.start_s + job.time_limit_s)
        self.allowance.note(job, hold, fit.start_s, fit.start_s + job.time_limit_s)
        self.apart.note(job, replicas, fit.start_s, fit.start_s + job.time_limit_s)
        if fit.start_s == self.now_s:
            self.held.start(job, hold)
            for scorer in self._scorers.values():
                scorer.note(job.shape, replicas)
        return replicas, score

    def let_go(self, job: RunningJob, lost: Sequence[ReplicaPlacement]) -> None:
        """Have a running job leave some or all of its replicas at `notice_s`.

        Args:
            job: one that was not told to end.
            lost: what it leaves, some of `job.replicas`.
        """
        left, ends_s = self.held.hold_of(job, lost), by_limit(self.now_s)
        self.profile.release(left, self.notice_s, ends_s(job.spec, job.started_s))
        self.held.leave(job, left, self.notice_s)
        self.apart.leave(job.spec, without(job.replicas, lost), self.notice_s)
        self._full.clear()  # there is more room later than there was
        self.no_earlier.clear()

    def _placement(self, job: JobSpec) -> str:
        return self.demand(job, ANY).placement or self.policy.placement

    def take_unavailable(self, job: JobSpec) -> None:
        """Let a job claim nodes that are not ready, so that two jobs never hope for the same.

        Nothing that can start is touched: nodes that are not ready are nobody's to use, and what
        does not run there charges no quota and draws no power.
        """
        for flavor in self.allowed(job):
            demand = self.demand(job, flavor, whatever_health=True)
            counted = self.counted(demand, 1)
            counts = np.where(self.layout.ready, 0, counted.counts)
            if reach(self.layout, counts, job.topology) >= job.replicas_min:
                if job.topology:
                    counts = narrowed(self.layout, counts, job.topology, job.replicas_min)
                site = self.site(demand, 1)._replace(counts=counts)
                replicas, _ = place(site, job.replicas_min, self._placement(job))
                hold = Hold(job.tenant, (), job.shape, replicas)
                self.profile.hold(hold, self.now_s, self.now_s + job.time_limit_s, draws=False)
                return


def _without(counts: IntArray, nodes: IntArray) -> IntArray:
    """Return a copy of the counts, 0 on some nodes."""
    counts = counts.copy()
    counts[nodes] = 0
    return counts


def allows_any(policy: Policy) -> bool:
    """Return whether a policy lets anybody be evicted at all."""
    limits = policy.preemption
    return limits.by_priority or limits.by_reclaim or limits.by_fair_share
