"""The laws of preemption once more, apart from the engine, for this tree of three levels.

Guarantees are Kueue's SubtreeQuota. Two teams of one department meet there, as teams; two of
different departments meet at the root, as departments. One flavor, whole devices.

Source: YuniKorn design/preemption.md; KAI GuaranteeDeservedQuota; the policy's own limits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.fairness.month import FLAVOR
from scheduler.core.plan import EvictionCause, Plan, Preempt
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob, Snapshot, TenantNode


class Standings:
    """What every team and department owns and holds, in devices."""

    def __init__(self, tenants: Sequence[TenantNode], held: Mapping[str, int]) -> None:
        self.parent = {t.slug: t.parent for t in tenants}
        self.weight = {t.slug: t.fair_weight for t in tenants}
        self.root = tenants[0].slug
        self._kept, self.owned = {}, Counter[str]()
        for tenant in reversed(tenants):
            slug, line = tenant.slug, tenant.quotas[FLAVOR.name]
            self.owned[slug] += line.nominal // 1000
            lends = line.lending_limit
            kept = 0 if lends is None else max(0, self.owned[slug] - lends // 1000)
            self._kept[slug] = kept
            if tenant.parent is not None:
                self.owned[tenant.parent] += self.owned[slug] - kept
        self.held: Counter[str] = Counter()
        for slug, devices in held.items():
            self.add(slug, devices)

    def add(self, slug: str | None, devices: int) -> None:
        """Let a team hold more, or less; what passes the part it keeps to itself moves up."""
        while slug is not None and devices:
            before = max(0, self.held[slug] - self._kept[slug])
            self.held[slug] += devices
            devices = max(0, self.held[slug] - self._kept[slug]) - before
            slug = self.parent[slug]

    def side(self, one: str, other: str) -> list[str]:
        """Return the tenants on one's side, from it up to where it meets the other."""
        if self.parent[one] == self.parent[other]:
            return [one]
        return [one, str(self.parent[one])]

    def may_claim(self, taker: JobSpec, loser: str) -> bool:
        """Return whether the taker's side stays within its guarantee with the job (law 4)."""
        return self._within(taker, self.side(taker.tenant, loser)[-1:])

    def surplus(self, slug: str, other: str, devices: int) -> tuple[int, float]:
        """Return what a team's side holds above its guarantee, and its weight, with so many more.

        Those more are a job's of the team; fewer where they are negative.
        """
        top = self.side(slug, other)[-1]
        self.add(slug, devices)
        above = self.held[top] - self.owned[top]
        self.add(slug, -devices)
        return above, self.weight[top]

    def has_quota(self, job: JobSpec) -> bool:
        """Return whether the whole tree has what the job takes of it."""
        return self._within(job, [self.root])

    def owns_throughout(self, job: JobSpec) -> bool:
        """Return whether the job's team and department own what they hold with it."""
        return self._within(job, self.side(job.tenant, self.root))

    def _within(self, job: JobSpec, slugs: Iterable[str]) -> bool:
        self.add(job.tenant, job.shape.devices)
        fits = all(self.held[slug] <= self.owned[slug] for slug in slugs)
        self.add(job.tenant, -job.shape.devices)
        return fits

    def may_lose(self, victim: JobSpec, taker: str) -> bool:
        """Return whether everybody on its side keeps its guarantee without the victim (law 2)."""
        self.add(victim.tenant, -victim.shape.devices)
        side = self.side(victim.tenant, taker)
        keeps = all(self.held[slug] >= self.owned[slug] for slug in side)
        self.add(victim.tenant, victim.shape.devices)
        return keeps


def room_by_law(
    standings: Standings,
    job: JobSpec,
    running: Iterable[RunningJob],
    free: Sequence[int],
    policy: PreemptionPolicy,
) -> bool:
    """Return whether a job that its team owns the devices for could have them by the laws.

    Somewhere there is room, and in the whole tree quota, once lawful victims are gone. Where
    nobody has to go, the job is held up by who is ahead of it; that counts only if its department
    is within its quota, too, so that the job is entitled at every level. The least run time is
    left aside: what it protects now it will not protect for long.
    """
    lawful = [
        one.spec
        for one in sorted(running, key=lambda one: one.spec.uid)
        if _is_lawful(one, job, policy)
        and one.spec.tenant != job.tenant
        and standings.may_claim(job, one.spec.tenant)
    ]
    at = {one.spec.uid: one.replicas[0].node for one in running}
    for node, room in enumerate(free):
        here = [spec for spec in lawful if at[spec.uid] == node]
        elsewhere = [spec for spec in lawful if at[spec.uid] != node]
        gone = _frees(standings, job, here, elsewhere, room)
        if gone or (gone is not None and standings.owns_throughout(job)):
            return True
    return False


def _frees(
    standings: Standings,
    job: JobSpec,
    here: Iterable[JobSpec],
    elsewhere: Iterable[JobSpec],
    room: int,
) -> int | None:
    """Return how many have to go so that a node and the quota have room, None if that is not so."""
    gone: list[JobSpec] = []

    def let_go(victim: JobSpec) -> None:
        standings.add(victim.tenant, -victim.shape.devices)
        gone.append(victim)

    for victim in here:
        if room < job.shape.devices and standings.may_lose(victim, job.tenant):
            let_go(victim)
            room += victim.shape.devices
    for victim in elsewhere:
        if not standings.has_quota(job) and standings.may_lose(victim, job.tenant):
            let_go(victim)
    enough = room >= job.shape.devices and standings.has_quota(job)
    for victim in gone:
        standings.add(victim.tenant, victim.shape.devices)
    return len(gone) if enough else None


def _is_lawful(one: RunningJob, job: JobSpec, policy: PreemptionPolicy) -> bool:
    spec = one.spec
    return (
        spec.preemptible
        and spec.preempted_count < policy.most_evictions
        and spec.priority <= job.priority
    )


def violations(
    snapshot: Snapshot, plan: Plan, policy: PreemptionPolicy, started: Mapping[str, int]
) -> list[str]:
    """Return what in a plan's evictions is against a law.

    A plan does not say which of its starts came before an eviction, so the claim is checked
    without them, and what the victims' side has left with them.

    Args:
        snapshot: that it was made on.
        plan: what was decided.
        policy: the limits.
        started: team -> devices of the plan's starts.
    """
    stays = Counter[str]()
    for one in snapshot.running:
        if one.ending_s is None:
            stays[one.spec.tenant] += one.spec.shape.devices
    claims, standings = Standings(snapshot.tenants, stays), Standings(snapshot.tenants, stays)
    for slug, devices in started.items():
        standings.add(slug, devices)
    running = {one.spec.uid: one for one in snapshot.running}
    waiting = {job.uid: job for job in snapshot.pending}
    found: list[str] = []
    for beneficiary in dict.fromkeys(preempt.beneficiary for preempt in plan.preempts):
        job = waiting[beneficiary]
        mine = [preempt for preempt in plan.preempts if preempt.beneficiary == beneficiary]
        for preempt in mine:
            one = running[preempt.uid]
            wrong = _wrong(
                (claims, standings), one, job, preempt, policy=policy, now_s=snapshot.now_s
            )
            found += [f"{preempt.uid} for {beneficiary}: {what}" for what in wrong]
            for side in (claims, standings):
                side.add(one.spec.tenant, -one.spec.shape.devices)
        for side in (claims, standings):
            side.add(job.tenant, job.shape.devices)
    return found


def _wrong(
    before_and_after: tuple[Standings, Standings],
    one: RunningJob,
    job: JobSpec,
    preempt: Preempt,
    *,
    policy: PreemptionPolicy,
    now_s: float,
) -> list[str]:
    spec, (claims, standings) = one.spec, before_and_after
    since_s = max(job.submitted_s, job.not_before_s, job.promised_s)
    reclaims = preempt.cause is EvictionCause.RECLAIMED
    evens = preempt.cause is EvictionCause.REBALANCED
    lower = policy.by_priority and spec.priority < job.priority
    takes, weight = claims.surplus(job.tenant, spec.tenant, job.shape.devices)
    keeps, others_weight = standings.surplus(spec.tenant, job.tenant, -spec.shape.devices)
    checks = {
        "may not be evicted": spec.preemptible,
        "ran too short": now_s - one.started_s >= policy.min_runtime_s,
        "evicted too often": spec.preempted_count < policy.most_evictions,
        "already told to go": one.ending_s is None,
        "the beneficiary waited too short": now_s - since_s >= policy.delay_s,
        "of a higher priority": spec.priority <= job.priority,
        "not by priority": reclaims or evens or lower,
        "not by reclaim": not reclaims or policy.by_reclaim,
        "not by fair share": not evens or (policy.by_fair_share and job.preemptible),
        "takes more than its fair share": not evens or takes / weight <= keeps / others_weight,
        "claims what it does not own": not reclaims or claims.may_claim(job, spec.tenant),
        "loses what it owns": spec.tenant == job.tenant or standings.may_lose(spec, job.tenant),
    }
    return [what for what, good in checks.items() if not good]
