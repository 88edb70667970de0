"""The jobs' turns: each is started, planned and reserved for, or told why not.

Both strategies run this; they differ in who gets a turn first and on which flavor.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from scheduler.core.plan import Plan, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import NEVER, Pending, Remedy, WaitReason
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide import clashes, explain, extras, lasting, remedies
from scheduler.decide.admission import Refusal, refusal
from scheduler.decide.advice import Tried, sure
from scheduler.decide.eta import Waiting, planned_after_back_off, with_expected_starts
from scheduler.decide.fairness import FairShares
from scheduler.decide.feasibility import ANY
from scheduler.decide.later import fit_later
from scheduler.decide.ordering import Queue, Ranked, Scale, scale_of, static_parts
from scheduler.decide.placement import Fit
from scheduler.decide.preemption import Outlook, Preemption, asks_from_s
from scheduler.decide.preemption.growth import grow
from scheduler.decide.quota import Charge
from scheduler.decide.session import Session

MOST_TRIAL_COST = 200
"""Advice is tried on a copy of the world until so many turns of other jobs were spent on it."""

STEPS_A_TURN = 10
"""To begin a trial costs a turn per so many jobs, nodes and tenants."""


class Turns:
    """What one pass over the queue has decided so far.

    Attributes:
        session: what is left.
        shares: the tenants' standing.
        candidates: the jobs that are not refused, any order.
        starts: jobs started, in order.

    Args:
        focus: uid of a job that gets remedies however far back it stands.
    """

    def __init__(
        self, snapshot: Snapshot, policy: Policy, *, now_s: float, focus: str = ""
    ) -> None:
        self.snapshot, self.policy, self.now_s = snapshot, policy, now_s
        self._focus = focus
        self.session = Session(snapshot, policy, now_s=now_s)
        refusals = {job.uid: refusal(self.session, job) for job in snapshot.pending}
        self.candidates = [job for job in snapshot.pending if refusals[job.uid] is None]
        self.shares = _shares(self.session, self.candidates)
        self.starts: list[Start] = []
        self._cut: list[tuple[int, JobSpec]] = []  # place in `starts`, of those that got less
        self._whole_queue: tuple[Queue, Scale] | None = None
        self._doubtful: list[tuple[JobSpec, Remedy, int]] = []
        self._never: list[JobSpec] = []
        self._refused: list[Pending] = []
        for job in snapshot.pending:
            if (why := refusals[job.uid]) is not None:
                self._refused.append(self._refuse(job, why))
                if why.code in NEVER - {WaitReason.MISCONFIGURED}:
                    self._never.append(job)
        self._waiting: list[Waiting] = []
        self.preemption = Preemption(self.session)

    def queue(self, jobs: Sequence[JobSpec] | None = None) -> Iterator[Ranked]:
        """Give the candidates (or some of them) in order, following the shares as they move."""
        capacity = capacity_milli(self.session)
        cpu_milli = capacity.get(CPU_FLAVOR, 0)
        scale = scale_of(
            self.candidates, devices_milli=sum(capacity.values()) - cpu_milli, cpu_milli=cpu_milli
        )
        ranked = [
            (job, self._parts(job, scale), self._usable(job))
            for job in (self.candidates if jobs is None else jobs)
        ]
        fair_weight = self.policy.order.fair_share
        queue = Queue(ranked, self.shares, fair_weight, tuple(sorted(capacity)), self._is_overdue)
        self._whole_queue = (queue, scale) if jobs is None else None
        return iter(queue)

    def _parts(self, job: JobSpec, scale: Scale) -> Mapping[str, float]:
        policy = self.policy
        return static_parts(job, policy.order, scale, now_s=self.now_s, qos=policy.qos)

    def _is_overdue(self, job: JobSpec) -> bool:
        """Return whether a job has waited long enough to claim back what its tenant owns."""
        limits = self.policy.preemption
        late = limits.by_reclaim and asks_from_s(job, limits) <= self.now_s
        return late and self._owns(job)

    def _goes_first(self, job: JobSpec) -> bool:
        """Return whether a job has its turn before others, whatever its tenant borrows."""
        return job.promised_s > 0 or self._is_overdue(job)

    def _owns(self, job: JobSpec) -> bool:
        return self.session.allowance.owns(job, self.session.allowed(job))

    def _usable(self, job: JobSpec) -> tuple[str, ...]:
        flavors = self.session.allowed(job)
        return tuple(sorted(self.session.flavor_name(f) for f in flavors if f != ANY))

    def split_by_quota(self, queue: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
        """Return who would start within its tenant's quota, were all before it started; and others.

        A job counts with its least size on the first flavor that it may use.
        """
        owners, borrowers = [], []
        for ranked in queue:
            if self._must_borrow(ranked.job):
                borrowers.append(ranked)
            else:
                owners.append(ranked)
                self._count(ranked.job, 1)
        for ranked in owners:
            self._count(ranked.job, -1)
        return owners, borrowers

    def _must_borrow(self, job: JobSpec) -> bool:
        return bool(self.shares.path(job.tenant, self._usable(job)))

    def _count(self, job: JobSpec, sign: int) -> None:
        """Let the shares count a job as started; no more with -1."""
        flavor = self.session.allowed(job)[0]
        charges = self.session.charges(job, flavor, job.replicas_min)
        self.shares.allocate(job.tenant, [Charge(name, sign * n) for name, n in charges])

    def turn(self, ranked: Ranked) -> bool:
        """Give one job its turn; return whether it started."""
        if self._cut and not self._goes_first(ranked.job) and self._must_borrow(ranked.job):
            self.widen()  # all owners had their turn
        if self.try_start(ranked):
            return True
        self._block(ranked)
        return False

    def try_start(self, ranked: Ranked, flavors: Sequence[int] | None = None) -> bool:
        """Start the job if it fits now; return whether it did.

        On flavors that the caller chose it gets all that it may have: the others were weighed then.
        """
        job = ranked.job
        fit = self.session.fit_now(job, flavors)
        if fit is None:
            return False
        others_wait = ranked.position < len(self.candidates)
        before_owners = self._goes_first(job) or not self._must_borrow(job)
        if flavors is None and others_wait and before_owners:
            part = extras.own_part(self.session, job, fit)
            if part.replicas < fit.replicas:
                self._cut.append((len(self.starts), job))
            fit = part
        replicas, score = self.session.take(job, fit)
        flavor = self.session.flavor_name(fit.flavor)
        self._book(job, self.session.charges(job, fit.flavor, fit.replicas))
        self.starts.append(Start(job.uid, replicas, flavor, score, ranked.parts))
        return True

    def _book(self, job: JobSpec, charges: Sequence[Charge]) -> None:
        self.shares.allocate(job.tenant, charges)
        self.preemption.book(job.tenant, charges)

    def widen(self) -> None:
        """Give what is left to elastic jobs that got no more than their tenant owns."""
        for k, job in self._cut:
            start = extras.widened(self.session, job, self.starts[k])
            more = len(start.replicas) - len(self.starts[k].replicas)
            if more:
                flavor = self.session.flavor_of.get(start.flavor, ANY)
                self._book(job, self.session.charges(job, flavor, more))
                self.starts[k] = start
        self._cut.clear()

    def _block(self, ranked: Ranked) -> None:
        """Say why the job waits, and plan and reserve for it while the depth lasts."""
        job = ranked.job
        why = explain.blocked(self.session, job)
        helped = len(self._waiting) < self.policy.remedy_depth or job.uid == self._focus
        helps = remedies.for_blocked(self.session, job, why) if helped else ()
        self._doubt(ranked, helps)
        if why.code is WaitReason.NODES_UNAVAILABLE:
            self.session.take_unavailable(job)
        outlook = Outlook(None)
        ahead = len(self._waiting) < self.policy.backfill_depth
        if ahead and not self.session.profile.is_full:
            outlook = self._plan_ahead(job, fit_later(self.session, job))
        elif self._owns(job):  # however far back: what a tenant owns it can have back
            outlook = self._plan_ahead(job, None)
        if helped and outlook.fit:
            params = {"start_s": outlook.fit.start_s, "starts_now": False}
            helps += (Remedy("later", params),)
        code = WaitReason.WAITING_FOR_PREEMPTED_JOBS if outlook.for_others else why.code
        if outlook.for_others and outlook.fit and why.code is WaitReason.WAITING_FOR_QUOTA:
            numbers = explain.quota_evidence(self.session, job, flavors=[outlook.fit.flavor])
            why = why._replace(evidence=numbers) if "flavor" in numbers else why
        evidence = {**why.evidence, **outlook.evidence, "ahead": ranked.position - 1}
        pending = Pending(
            job.uid,
            code,
            evidence,
            helps,
            position=ranked.position,
            priority_parts=ranked.parts,
        )
        planned_s = outlook.fit.start_s if outlook.fit else None
        self._waiting.append(Waiting(job, pending, planned_s))

    def _plan_ahead(self, job: JobSpec, planned: Fit | None) -> Outlook:
        """Make room for the job if it may ask for it, and reserve its start."""
        preview = job.uid == self._focus
        outlook = self.preemption.consider(job, planned, preview=preview)
        if outlook.fit:
            self.session.take(job, outlook.fit)
        return outlook

    def _doubt(self, ranked: Ranked, helps: Sequence[Remedy]) -> None:
        """Note the advice with which the job might not stand at this place in the queue."""
        for remedy in helps:
            if remedy.params.get("starts_now") and not self._stays(ranked.job, remedy):
                self._doubtful.append((ranked.job, remedy, ranked.position))

    def _stays(self, job: JobSpec, remedy: Remedy) -> bool:
        """Return whether a job whose turn it is would surely have it now with a remedy, too."""
        world, changed = remedies.apply(self.snapshot, job, remedy)
        if self._whole_queue is None or world is not self.snapshot:
            return False
        queue, scale = self._whole_queue
        return queue.is_next(changed, self._parts(changed, scale), self._usable(changed))

    def _refuse(self, job: JobSpec, why: Refusal) -> Pending:
        helped = len(self._refused) < self.policy.remedy_depth or job.uid == self._focus
        helps = remedies.for_refused(self.session, job, why) if helped else ()
        waiting = len(self.candidates)
        self._doubtful += [(job, r, waiting) for r in helps if r.params.get("starts_now")]
        return Pending(job.uid, why.code, why.evidence, helps)

    def _tried(self) -> Tried:
        """Return of doubtful advice whether the job starts with it."""
        size = len(self.snapshot.pending) + self.session.layout.nodes + len(self.snapshot.tenants)
        left, tried = MOST_TRIAL_COST, dict[tuple[str, str], bool | None]()
        for job, remedy, position in self._doubtful:
            left -= position + size // STEPS_A_TURN + 1
            affordable = left >= 0 or job.uid == self._focus
            tried[job.uid, remedy.code] = self._starts_with(job, remedy) if affordable else None
        return tried

    def _starts_with(self, job: JobSpec, remedy: Remedy) -> bool:
        """Return whether a job would start in this cycle with a remedy applied."""
        world, changed = remedies.apply(self.snapshot, job, remedy)
        others = (other for other in world.pending if other.uid != job.uid)
        policy = replace(self.policy, remedy_depth=0, expects_starts=False)
        world = replace(world, pending=(*others, changed))
        again = Turns(world, policy, now_s=self.now_s)
        for ranked in again.queue():
            started = again.turn(ranked)
            if ranked.job.uid == job.uid:
                return started
        return False

    def draft(self, report: SolverReport) -> Plan:
        """Return what was decided, before advice is tried, jobs grow and starts are expected.

        That is a third of the work of a plan, and needless where another strategy finds better.
        """
        waiting = tuple(one.pending for one in self._waiting)
        return Plan(
            cluster=self.snapshot.cluster,
            now_s=self.now_s,
            starts=tuple(self.starts),
            pending=(*waiting, *self._refused),
            fair_shares=(),
            solver=report,
            preempts=tuple(self.preemption.preempts),
            resizes=tuple(self.preemption.resizes),
        )

    def _backing_off(self, refused: Sequence[Pending]) -> list[Waiting]:
        """Return the jobs that wait for another try, those whose back-off ends first."""
        jobs = {job.uid: job for job in self.snapshot.pending}
        found = [(jobs[p.uid], p) for p in refused if p.code is WaitReason.BACKING_OFF]
        found.sort(key=lambda one: (one[0].not_before_s, one[0].submitted_s, one[0].uid))
        depth = self.policy.backfill_depth
        return [
            Waiting(job, pending, planned_after_back_off(self.session, job))
            for job, pending in found[:depth]
        ]

    def plan(self, report: SolverReport) -> Plan:
        """Return the plan of what was decided."""
        tried = self._tried()
        waiting = [one._replace(pending=sure(one.pending, tried)) for one in self._waiting]
        refused = [sure(pending, tried) for pending in self._refused]
        backs_off = {p.uid for p in refused if p.code is WaitReason.BACKING_OFF}
        grown = grow(
            self.session,
            self.shares,
            [one.job for one in waiting],
            [job for job in self.snapshot.pending if job.uid in backs_off],
            self.preemption.told(),
        )
        timed = tuple(one.pending for one in waiting)
        lasts_until_s = 0.0
        if self.policy.expects_starts:
            later = self._backing_off(refused)
            told = with_expected_starts(self.session, [*waiting, *later])
            timed, later_told = told[: len(waiting)], told[len(waiting) :]
            known = {pending.uid: pending for pending in later_told}
            refused = [known.get(pending.uid, pending) for pending in refused]
            moves = self.starts or self.preemption.preempts or self.preemption.resizes
            lasts_until_s = 0.0 if moves else lasting.lasts_until_s(self.session, timed)
        return replace(
            self.draft(report),
            pending=(*timed, *sorted(refused, key=lambda pending: pending.uid)),
            fair_shares=self.shares.rows(),
            resizes=(*self.preemption.resizes, *grown),
            lasts_until_s=lasts_until_s,
            clashes=clashes.of_input(self.session, self._never),
        )


def capacity_milli(session: Session) -> dict[str, int]:
    """Return flavor -> milli-units that can be used or are held, CPU included."""
    layout, fleet = session.layout, session.snapshot.fleet
    held = layout.flavor[:, :] >= 0
    held &= session.free_at_start.milli < WHOLE_MILLI
    counted = layout.usable | held
    capacity = {
        flavor.name: WHOLE_MILLI * int((counted & (layout.flavor == i)).sum())
        for i, flavor in enumerate(fleet.flavors)
    }
    return capacity | {CPU_FLAVOR: int(layout.capacity.cpu[layout.ready].sum())}


def _shares(session: Session, candidates: Sequence[JobSpec]) -> FairShares:
    snapshot = session.snapshot
    allocated: dict[tuple[str, str], int] = {}
    for one in session.held.active:
        _add(allocated, one.hold.tenant, one.hold.charges)
    requested = dict(allocated)
    for spec in candidates:
        wanted = session.charges(spec, session.allowed(spec)[0], spec.replicas_max)
        _add(requested, spec.tenant, wanted)
    capacity = capacity_milli(session)
    return FairShares(snapshot.tenants, capacity, allocated, requested, snapshot.usage_decayed)


def _add(sums: dict[tuple[str, str], int], tenant: str, charges: Sequence[tuple[str, int]]) -> None:
    for flavor, amount in charges:
        sums[tenant, flavor] = sums.get((tenant, flavor), 0) + amount


def parts_of(plan: Plan) -> Mapping[str, Mapping[str, float]]:
    """Return uid -> priority parts of every job that was in the queue."""
    started = {start.uid: start.priority_parts for start in plan.starts}
    return started | {p.uid: p.priority_parts for p in plan.pending if p.position}
