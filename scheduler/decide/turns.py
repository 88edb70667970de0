"""The jobs' turns: each is started, planned and reserved for, or told why not.

Both strategies run this; they differ in who gets a turn first and on which flavor.
"""

from collections.abc import Iterator, Mapping, Sequence

from scheduler.core.plan import Plan, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending, Remedy, WaitReason
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide import explain, lasting, remedies
from scheduler.decide.admission import Refusal, refusal
from scheduler.decide.eta import Waiting, with_expected_starts
from scheduler.decide.fairness import FairShares
from scheduler.decide.feasibility import ANY
from scheduler.decide.ordering import Queue, Ranked, Scale, scale_of, static_parts
from scheduler.decide.preemption import Outlook, Preemption
from scheduler.decide.session import Session


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
        self._refused = [
            self._refuse(job, why)
            for job in snapshot.pending
            if (why := refusals[job.uid]) is not None
        ]
        self._waiting: list[Waiting] = []
        self._quota_contested = False
        self.preemption = Preemption(self.session)

    def queue(self, jobs: Sequence[JobSpec] | None = None) -> Iterator[Ranked]:
        """Give the candidates (or some of them) in order, following the shares as they move."""
        capacity = capacity_milli(self.session)
        cpu_milli = capacity.get(CPU_FLAVOR, 0)
        scale = scale_of(
            self.candidates, devices_milli=sum(capacity.values()) - cpu_milli, cpu_milli=cpu_milli
        )
        order = self.policy.order
        ranked = [
            (job, self._parts(job, scale), self._usable(job))
            for job in (self.candidates if jobs is None else jobs)
        ]
        return iter(Queue(ranked, self.shares, order.fair_share, sorted(capacity)))

    def _parts(self, job: JobSpec, scale: Scale) -> Mapping[str, float]:
        policy = self.policy
        return static_parts(job, policy.order, scale, now_s=self.now_s, qos=policy.qos)

    def _usable(self, job: JobSpec) -> tuple[str, ...]:
        flavors = self.session.allowed(job)
        return tuple(sorted(self.session.flavor_name(f) for f in flavors if f != ANY))

    def turn(self, ranked: Ranked) -> bool:
        """Give one job its turn; return whether it started."""
        if self.try_start(ranked):
            return True
        self._block(ranked)
        return False

    def try_start(self, ranked: Ranked, flavors: Sequence[int] | None = None) -> bool:
        """Start the job if it fits now; return whether it did."""
        job = ranked.job
        fit = self.session.fit_now(job, flavors)
        if fit is None:
            return False
        replicas, score = self.session.take(job, fit)
        charges = self.session.charges(job, fit.flavor, fit.replicas)
        self.shares.allocate(job.tenant, charges)
        self.preemption.book(job.tenant, charges)
        self._quota_contested |= fit.replicas < job.replicas_max
        flavor = self.session.flavor_name(fit.flavor)
        self.starts.append(Start(job.uid, replicas, flavor, score, ranked.parts))
        return True

    def _block(self, ranked: Ranked) -> None:
        """Say why the job waits, and plan and reserve for it while the depth lasts."""
        job = ranked.job
        why = explain.blocked(self.session, job)
        helped = len(self._waiting) < self.policy.remedy_depth or job.uid == self._focus
        helps = self._remedies(job, why) if helped else ()
        if why.code is WaitReason.NODES_UNAVAILABLE:
            self.session.take_unavailable(job)
        self._quota_contested |= why.code is WaitReason.WAITING_FOR_QUOTA
        outlook = Outlook(None)
        if len(self._waiting) < self.policy.backfill_depth:
            outlook = self._plan_ahead(job)
        code = WaitReason.WAITING_FOR_PREEMPTED_JOBS if outlook.for_others else why.code
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

    def _plan_ahead(self, job: JobSpec) -> Outlook:
        """Make room for the job if it may ask for it, and reserve its start."""
        planned, preview = self.session.fit_later(job), job.uid == self._focus
        outlook = self.preemption.consider(job, planned, preview=preview)
        if outlook.fit:
            self.session.take(job, outlook.fit)
        return outlook

    def _remedies(self, job: JobSpec, why: explain.Blocked) -> tuple[Remedy, ...]:
        contested = self._quota_contested
        return remedies.for_blocked(self.session, job, why, contested=contested)

    def _refuse(self, job: JobSpec, why: Refusal) -> Pending:
        helps = remedies.for_refused(self.session, job, why)
        return Pending(job.uid, why.code, why.evidence, helps)

    def plan(self, report: SolverReport) -> Plan:
        """Return the plan of what was decided."""
        timed = tuple(one.pending for one in self._waiting)
        lasts_until_s = 0.0
        if self.policy.expects_starts:
            timed = with_expected_starts(self.session, self._waiting)
            lasts_until_s = 0.0 if self.starts else lasting.lasts_until_s(self.session, timed)
        return Plan(
            cluster=self.snapshot.cluster,
            now_s=self.now_s,
            starts=tuple(self.starts),
            pending=(*timed, *sorted(self._refused, key=lambda pending: pending.uid)),
            fair_shares=self.shares.rows(),
            solver=report,
            preempts=tuple(self.preemption.preempts),
            resizes=tuple(self.preemption.resizes),
            lasts_until_s=lasts_until_s,
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
