"""The laws of preemption by their definitions, for tests: slow, recursive, nothing shared."""

from collections.abc import Iterable, Mapping

from scheduler.core.plan import EvictionCause, Plan
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob, Snapshot, TenantNode

Held = Mapping[tuple[str, str], int]


class Tree:
    """Guarantees and use of one flavor, each by its own definition (Kueue's)."""

    def __init__(self, tenants: Iterable[TenantNode], flavor: str) -> None:
        self.tenants = {tenant.slug: tenant for tenant in tenants}
        self.flavor = flavor

    def children(self, slug: str) -> list[str]:
        return [t.slug for t in self.tenants.values() if t.parent == slug]

    def nominal(self, slug: str) -> int:
        line = self.tenants[slug].quotas.get(self.flavor)
        return line.nominal if line else 0

    def guarantee(self, slug: str) -> int:
        lent = sum(self.guarantee(c) - self.kept(c) for c in self.children(slug))
        return self.nominal(slug) + lent

    def kept(self, slug: str) -> int:
        line = self.tenants[slug].quotas.get(self.flavor)
        if line is None or line.lending_limit is None:
            return 0
        return max(0, self.guarantee(slug) - line.lending_limit)

    def use(self, slug: str, held: Held) -> int:
        below = sum(max(0, self.use(c, held) - self.kept(c)) for c in self.children(slug))
        return held.get((slug, self.flavor), 0) + below

    def line(self, slug: str) -> list[str]:
        parent = self.tenants[slug].parent
        return [slug, *(self.line(parent) if parent else [])]

    def above(self, one: str, other: str, held: Held) -> list[int]:
        """Return what one's side holds above its guarantee, from one up to below the ancestor."""
        side = [slug for slug in self.line(one) if slug not in self.line(other)]
        if not side:
            return [held.get((one, self.flavor), 0) - self.nominal(one)]
        return [self.use(slug, held) - self.guarantee(slug) for slug in side]

    def share(self, one: str, other: str, held: Held) -> tuple[int, float]:
        """Return what one's side holds above its guarantee where the two meet, and its weight."""
        side = [slug for slug in self.line(one) if slug not in self.line(other)] or [one]
        return self.above(one, other, held)[-1], self.tenants[side[-1]].fair_weight


def charges(job: JobSpec, flavor: str, replicas: int) -> dict[str, int]:
    found = {"cpu": job.shape.cpu_milli * replicas}
    if flavor:
        found[flavor] = job.shape.device_milli * replicas
    return found


def flavor_of(snapshot: Snapshot, replicas: Iterable[object]) -> str:
    devices = [d for replica in replicas for d in replica.devices]  # type: ignore[attr-defined]
    fleet = snapshot.fleet
    return fleet.flavors[int(fleet.device_flavor[devices[0]])].name if devices else ""


def broken_laws(snapshot: Snapshot, plan: Plan, policy: PreemptionPolicy) -> list[str]:
    """Return what a plan's evictions break; [] where all is well."""
    running = {job.spec.uid: job for job in snapshot.running}
    pending = {job.uid: job for job in snapshot.pending}
    found = []
    for preempt in plan.preempts:
        job, taker = running[preempt.uid], pending[preempt.beneficiary]
        wrong = [
            *_of_policy(job, taker, policy, preempt.cause, snapshot.now_s),
            *_of_standing(snapshot, plan, job, taker, preempt.cause, policy=policy),
        ]
        found += [f"{preempt.uid} for {preempt.beneficiary}: {one}" for one in wrong]
    return found


def options_of(snapshot: Snapshot, job: JobSpec) -> list[str]:
    """Return the flavors that a job may be given; [""] for a job without devices."""
    if not job.shape.devices:
        return [""]
    names = [flavor.name for flavor in snapshot.fleet.flavors]
    wanted = {(name, asked) for name in names for asked in job.flavors or (name,)}
    return sorted({n for n, asked in wanted if n == asked or n.endswith(f"-mig-{asked}")})


def firm_options(
    snapshot: Snapshot, plan: Plan, taker: JobSpec, policy: PreemptionPolicy
) -> list[str]:
    """Return the flavors on which a beneficiary may be given room: a firm one within its own.

    What other firm jobs of its tenant hold once the grace is over counts: they run or start and do
    not end before, or are beneficiaries, too, with one flavor to go to.
    """
    options = options_of(snapshot, taker)
    if taker.preemptible:
        return options
    room_s = plan.now_s + max(policy.grace_s, 1.0)
    pending = {job.uid: job for job in snapshot.pending}
    others = [
        (job.spec, flavor_of(snapshot, job.replicas), len(job.replicas))
        for job in snapshot.running
        if job.ending_s is None and job.started_s + job.spec.time_limit_s > room_s
    ]
    others += [
        (pending[s.uid], s.flavor, len(s.replicas))
        for s in plan.starts
        if plan.now_s + pending[s.uid].time_limit_s > room_s
    ]
    named = {p.beneficiary for p in plan.preempts} | {r.beneficiary for r in plan.resizes}
    for uid in named - {taker.uid, ""}:
        only = options_of(snapshot, pending[uid])
        others += [(pending[uid], only[0], pending[uid].replicas_min)] if len(only) == 1 else []
    firm = [one for one in others if not one[0].preemptible and one[0].tenant == taker.tenant]
    quotas = next(t.quotas for t in snapshot.tenants if t.slug == taker.tenant)
    limited = {name for t in snapshot.tenants for name in t.quotas}

    def is_owned(flavor: str) -> bool:
        wants = charges(taker, flavor, taker.replicas_min)
        for name in (name for name in wants if wants[name] and name in limited):
            held = sum(charges(*one).get(name, 0) for one in firm) + wants[name]
            if name not in quotas or held > quotas[name].nominal:
                return False
        return True

    return [flavor for flavor in options if is_owned(flavor)]


def broken_shrinks(snapshot: Snapshot, plan: Plan, policy: PreemptionPolicy) -> list[str]:
    """Return what the resizes break; [] where all is well."""
    running = {job.spec.uid: job for job in snapshot.running}
    pending = {job.uid: job for job in snapshot.pending}
    found = list[str]()
    for one in plan.resizes:
        if one.cause is None or not one.beneficiary:
            found += [f"{one.uid}: cause"] if one.cause or one.beneficiary else []
            continue
        job, taker = running[one.uid], pending[one.beneficiary]
        lost = len(job.replicas) - len(one.replicas)
        wrong = [
            *_of_policy(job, taker, policy, one.cause, snapshot.now_s, shrinks=True),
            *_of_standing(snapshot, plan, job, taker, one.cause, policy=policy, lost=lost),
        ]
        found += [f"{one.uid} for {one.beneficiary}: {name}" for name in wrong]
    return found


def _of_policy(
    job: RunningJob,
    taker: JobSpec,
    policy: PreemptionPolicy,
    cause: EvictionCause,
    now_s: float,
    *,
    shrinks: bool = False,
) -> list[str]:
    checks = {
        "preemptible": job.spec.preemptible,
        "allowed": {
            EvictionCause.RECLAIMED: policy.by_reclaim,
            EvictionCause.PREEMPTED: policy.by_priority,
            EvictionCause.REBALANCED: policy.by_fair_share and taker.preemptible,
            EvictionCause.SHARED: shrinks
            and (policy.by_reclaim or policy.by_priority or policy.by_fair_share),
        }[cause],
        "delay": now_s - max(taker.submitted_s, taker.not_before_s, taker.promised_s)
        >= policy.delay_s,
        "min_runtime": (shrinks and cause is not EvictionCause.SHARED)
        or now_s - job.started_s >= policy.min_runtime_s,
        "most_evictions": shrinks or job.spec.preempted_count < policy.most_evictions,
        "not told before": job.ending_s is None,
        "law 6": job.spec.priority <= taker.priority,
        "law 6 by priority": cause is not EvictionCause.PREEMPTED
        or job.spec.priority < taker.priority,
    }
    return [name for name, good in checks.items() if not good]


def _of_standing(
    snapshot: Snapshot,
    plan: Plan,
    job: RunningJob,
    taker: JobSpec,
    cause: EvictionCause,
    *,
    policy: PreemptionPolicy,
    lost: int = 0,
) -> list[str]:
    """Laws 2, 4, 5 and 7; each as what must hold in whatever order the plan was made."""
    options = firm_options(snapshot, plan, taker, policy)
    wrong = [] if options else ["nothing that it could take"]
    lines = Tree(snapshot.tenants, "cpu")
    fence = [s for s in lines.line(taker.tenant) if lines.tenants[s].preemption_fence]
    if fence and fence[0] not in lines.line(job.spec.tenant):
        wrong.append("law 7")
    if job.spec.tenant == taker.tenant or not options:
        own = {EvictionCause.PREEMPTED, EvictionCause.SHARED}
        return wrong + ([] if cause in own else ["law 4, own tenant"])
    if cause is EvictionCause.SHARED:
        return [*wrong, "law 4, shares with strangers"]
    count = lost or len(job.replicas)
    broken = [_on_flavor(snapshot, plan, job, taker, cause, (name, count)) for name in options]
    return wrong if any(not one for one in broken) else wrong + broken[0]


def _on_flavor(  # noqa: PLR0917
    snapshot: Snapshot,
    plan: Plan,
    job: RunningJob,
    taker: JobSpec,
    cause: EvictionCause,
    option: tuple[str, int],
) -> list[str]:
    """Return what is broken if the taker runs on a flavor and the job loses so many replicas."""
    flavor, lost = option
    limited = {name for t in snapshot.tenants for name in t.quotas}
    wants = charges(taker, flavor, taker.replicas_min)
    held = flavor_of(snapshot, job.replicas)
    main, mine = held or "cpu", charges(job.spec, held, lost)
    judged = {main} if main in wants else {main, "cpu"}
    left = _plus(_held(snapshot, plan, most=True), job.spec.tenant, mine, sign=-1)
    broken = [
        f"law 2 in {name}"
        for name in judged & limited
        if min(Tree(snapshot.tenants, name).above(job.spec.tenant, taker.tenant, left)) < 0
    ]
    if cause is EvictionCause.PREEMPTED:
        return broken
    after = _plus(_held(snapshot, plan, most=False), taker.tenant, wants)
    for name in wants.keys() & limited:
        tree = Tree(snapshot.tenants, name)
        takes, weight = tree.share(taker.tenant, job.spec.tenant, after)
        keeps, others_weight = tree.share(job.spec.tenant, taker.tenant, left)
        even = weight > 0 < keeps and takes * others_weight <= keeps * weight
        if takes > 0 and not (even and cause is EvictionCause.REBALANCED):
            broken.append(f"law 4 in {name}")
    meets = main if main in wants else "cpu"
    return broken if meets in limited else [*broken, "law 4, no quota"]


def _plus(
    held: Held, tenant: str, amounts: Mapping[str, int], sign: int = 1
) -> dict[tuple[str, str], int]:
    changed = dict(held)
    for flavor, amount in amounts.items():
        changed[tenant, flavor] = changed.get((tenant, flavor), 0) + sign * amount
    return changed


def _held(snapshot: Snapshot, plan: Plan, *, most: bool) -> dict[tuple[str, str], int]:
    """Return the most, or the least, that tenants can have held when an eviction was chosen."""
    pending = {job.uid: job for job in snapshot.pending}
    gone = {preempt.uid for preempt in plan.preempts}
    kept = {r.uid: len(r.replicas) for r in plan.resizes if r.beneficiary}
    held: dict[tuple[str, str], int] = {}

    def add(job: JobSpec, flavor: str, replicas: int) -> None:
        for name, amount in charges(job, flavor, replicas).items():
            held[job.tenant, name] = held.get((job.tenant, name), 0) + amount

    for job in snapshot.running:
        stays = len(job.replicas) if job.ending_s is None else len(job.keeps)
        if not most:
            stays = 0 if job.spec.uid in gone else kept.get(job.spec.uid, stays)
        add(job.spec, flavor_of(snapshot, job.replicas), stays)
    if most:
        for start in plan.starts:
            add(pending[start.uid], start.flavor, len(start.replicas))
        for one in plan.pending:
            if one.code == "waiting_for_preempted_jobs":
                job_spec = pending[one.uid]
                for flavor in options_of(snapshot, job_spec):
                    add(job_spec, flavor, job_spec.replicas_min)
    return held
