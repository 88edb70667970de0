"""The part of the verifier that looks at who is evicted and resized; no code of the engine.

The laws are numbered as in `scheduler/decide/preemption/laws.py`. A plan does not say in which
order it was made, so that only what must hold whatever the order is checked: what is held at the
end, less what went to jobs outside, is no less than the guarantee.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from scheduler.core.errors import require
from scheduler.core.firm import room_options
from scheduler.core.held import Held, charge, options_of, upwards
from scheduler.core.plan import EvictionCause, Plan, Resize, Start
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.reasons import WaitReason
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot

LEAST_GRACE_S = 1.0
"""However short the grace, nobody is gone at the moment in which it is told to go."""

BY_CLAIM = frozenset({EvictionCause.RECLAIMED, EvictionCause.REBALANCED})
"""Causes for which the taker's tenant must hold little enough (law 4)."""


class _Loss(NamedTuple):
    """What one job loses to another."""

    job: RunningJob
    replicas: int
    taker: JobSpec
    cause: EvictionCause
    shrinks: bool


def check_disruptions(snapshot: Snapshot, plan: Plan, policy: PreemptionPolicy | None) -> None:
    """Check that nobody loses anything against the laws, and that resizes keep their bounds.

    Without a policy anybody may ask, as soon and as often as it likes.

    Raises:
        InvalidPlanError: names the law that is broken, and the job.
    """
    running = {job.spec.uid: job for job in snapshot.running}
    named = Counter([p.uid for p in plan.preempts] + [r.uid for r in plan.resizes])
    for uid, count in named.items():
        require(uid in running, f"job {uid!r} does not run")
        require(count == 1, f"job {uid!r} is evicted or resized {count} times")
        require(running[uid].ending_s is None, f"job {uid!r} was told to end already")
    for resize in plan.resizes:
        _check_size(running[resize.uid], resize)
    losses = list(_losses(snapshot, plan, running))
    for loss in losses:
        _check_loss(snapshot, loss)
        if policy:
            _check_policy(policy, plan.now_s, loss)
    _check_guarantees(snapshot, plan, losses, _options(snapshot, plan, policy, losses))


def growth(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[JobSpec, Start]]:
    """Give what grows, as if the replicas that are added were a job that starts.

    They are of the flavor that the job has, whatever it once asked for.
    """
    running = {job.spec.uid: job for job in snapshot.running}
    for resize in plan.resizes:
        job = running[resize.uid]
        added = _without(resize.replicas, job.replicas)
        if added:
            count = len(added)
            left_s = job.started_s + job.spec.time_limit_s - plan.now_s
            flavor = snapshot.fleet.flavor_held(job.replicas)
            spec = replace(
                job.spec,
                replicas_min=count,
                replicas_max=count,
                flavors=(flavor,),
                time_limit_s=max(0.0, left_s),
            )
            yield spec, Start(resize.uid, added, flavor)


def _check_size(job: RunningJob, resize: Resize) -> None:
    spec, count = job.spec, len(resize.replicas)
    within = spec.replicas_min <= count <= spec.replicas_max
    require(within, f"job {resize.uid!r} is resized to {count} replicas")
    fewer, more = (
        (job.replicas, resize.replicas)
        if resize.beneficiary
        else (
            resize.replicas,
            job.replicas,
        )
    )
    changes = len(fewer) != len(more) and not _without(more, fewer)
    require(changes, f"job {resize.uid!r} does not keep the replicas that it has")
    says = (resize.cause is None) == (not resize.beneficiary)
    require(says, f"job {resize.uid!r} shrinks for no cause, or grows for one")


def _losses(snapshot: Snapshot, plan: Plan, running: Mapping[str, RunningJob]) -> Iterator[_Loss]:
    jobs = {job.uid: job for job in snapshot.pending}
    codes = {pending.uid: pending.code for pending in plan.pending}
    told = [(p.uid, p.beneficiary, p.cause) for p in plan.preempts]
    told += [(r.uid, r.beneficiary, r.cause) for r in plan.resizes if r.cause]
    kept = {resize.uid: len(resize.replicas) for resize in plan.resizes}
    for uid, taker, cause in told:
        waits = codes.get(taker) is WaitReason.WAITING_FOR_PREEMPTED_JOBS
        require(waits, f"job {uid!r} makes room for {taker!r}, which does not wait for it")
        count = len(running[uid].replicas) - kept.get(uid, 0)
        yield _Loss(running[uid], count, jobs[taker], cause, uid in kept)


def _check_loss(snapshot: Snapshot, loss: _Loss) -> None:
    """Check preemptibility, whose job it is (law 4), priority (law 6) and the fence (law 7)."""
    uid, victim, taker = loss.job.spec.uid, loss.job.spec, loss.taker
    tenants = {tenant.slug for tenant in snapshot.tenants}
    require({victim.tenant, taker.tenant} <= tenants, f"job {uid!r} makes room between strangers")
    require(victim.preemptible, f"job {uid!r} is not preemptible")
    require(victim.priority <= taker.priority, f"job {uid!r} is of higher priority")
    if loss.cause is EvictionCause.PREEMPTED:
        require(victim.priority < taker.priority, f"job {uid!r} is of equal priority")
    if loss.cause in BY_CLAIM:
        require(victim.tenant != taker.tenant, f"job {uid!r} is of the tenant that reclaims")
    if loss.cause is EvictionCause.SHARED:
        require(loss.shrinks, f"job {uid!r} is evicted where it need only share")
        require(victim.tenant == taker.tenant, f"job {uid!r} shares with another tenant")
    if loss.cause is EvictionCause.REBALANCED:
        require(taker.preemptible, f"job {taker.uid!r} borrows for good what {uid!r} has")
    fences = {tenant.slug for tenant in snapshot.tenants if tenant.preemption_fence}
    fence = next((slug for slug in upwards(snapshot, taker.tenant) if slug in fences), None)
    inside = fence is None or fence in upwards(snapshot, victim.tenant)
    require(inside, f"job {uid!r} is outside the fence of {fence!r}")


def _check_policy(policy: PreemptionPolicy, now_s: float, loss: _Loss) -> None:
    """Check that the taker has waited, and that the loser has run and is not evicted too often.

    What an elastic job has beyond its smallest gang it may lose however short it ran, unless it is
    to share it with its own tenant.
    """
    uid, spec, taker = loss.job.spec.uid, loss.job.spec, loss.taker
    asks_s = max(taker.submitted_s, taker.not_before_s, taker.promised_s) + policy.delay_s
    require(asks_s <= now_s, f"job {taker.uid!r} has not waited for the delay yet")
    ran_s = now_s - loss.job.started_s
    anytime = loss.shrinks and loss.cause is not EvictionCause.SHARED
    ran = anytime or ran_s >= policy.min_runtime_s
    require(ran, f"job {uid!r} has run for {ran_s} s only")
    allowed = {
        EvictionCause.PREEMPTED: policy.by_priority,
        EvictionCause.RECLAIMED: policy.by_reclaim,
        EvictionCause.REBALANCED: policy.by_fair_share,
    }
    may = allowed.get(loss.cause, any(allowed.values()))  # who shares, where anybody may ask
    require(may, f"job {uid!r} is {loss.cause}, which is not allowed")
    often = not loss.shrinks and spec.preempted_count >= policy.most_evictions
    require(not often, f"job {uid!r} was evicted {spec.preempted_count} times already")


def _options(
    snapshot: Snapshot, plan: Plan, policy: PreemptionPolicy | None, losses: Sequence[_Loss]
) -> dict[str, list[str]]:
    """Return uid -> the flavors on which each beneficiary may be given room, one at least."""
    grace_s = max(policy.grace_s, LEAST_GRACE_S) if policy else inf
    takers = {loss.taker.uid: loss.taker for loss in losses}
    found = room_options(snapshot, plan, list(takers.values()), plan.now_s + grace_s)
    for uid, options in found.items():
        owns = takers[uid].preemptible or bool(options)
        require(owns, f"room is made for {uid!r}, whose tenant does not own what it would keep")
    return found


def _claims(
    snapshot: Snapshot,
    loss: _Loss,
    losses: Sequence[_Loss],
    options: Sequence[str],
    *,
    least: Held,
    at_end: Held,
) -> list[str]:
    """Return those flavors on which the taker may take from the loser (law 4), "" for none."""
    if loss.cause in BY_CLAIM:
        most = Held(at_end)
        for one in losses:
            if one.taker is loss.taker and one.cause is EvictionCause.REBALANCED:
                flavor = snapshot.fleet.flavor_held(one.job.replicas)
                charge(most, one.job.spec, flavor, -one.replicas)
        options = [name for name in options if _has_claim(snapshot, loss, name, Held(least), most)]
    require(bool(options), f"{loss.taker.uid!r} has no claim on job {loss.job.spec.uid!r}")
    return list(options)


def _has_claim(snapshot: Snapshot, loss: _Loss, flavor: str, held: Held, kept: Held) -> bool:
    """Return whether the taker's side may hold what it does with the job on a flavor.

    To reclaim, no more than its guarantee; to rebalance, no more above it for its weight than the
    most that the loser's side can have kept. They must meet in a flavor with quotas: without one
    nobody owns anything.
    """
    limited = {name for tenant in snapshot.tenants for name in tenant.quotas}
    main = snapshot.fleet.flavor_held(loss.job.replicas) or CPU_FLAVOR
    charge(held, loss.taker, flavor, loss.taker.replicas_min)
    names = {CPU_FLAVOR, flavor} - {""}
    meets = (main if main in names else CPU_FLAVOR) in limited
    return meets and all(_may_hold(snapshot, loss, name, held, kept) for name in names & limited)


def _may_hold(snapshot: Snapshot, loss: _Loss, flavor: str, held: Held, kept: Held) -> bool:
    """Return whether the taker's side may hold so much of a flavor if the loser's keeps so much."""
    taker, loser = loss.taker.tenant, loss.job.spec.tenant
    mine, theirs = _sides(snapshot, taker, loser)[-1], _sides(snapshot, loser, taker)[-1]
    takes = _above(snapshot, mine[0], flavor, held, own=mine[1])
    if takes <= 0 or loss.cause is EvictionCause.RECLAIMED:
        return takes <= 0
    keeps = _above(snapshot, theirs[0], flavor, kept, own=theirs[1])
    weights = {tenant.slug: tenant.fair_weight for tenant in snapshot.tenants}
    even = takes * weights[theirs[0]] <= keeps * weights[mine[0]]
    return keeps > 0 and weights[mine[0]] > 0 and even


def _check_guarantees(
    snapshot: Snapshot,
    plan: Plan,
    losses: Sequence[_Loss],
    options: Mapping[str, Sequence[str]],
) -> None:
    """Check that all have a claim, and nobody is pushed below its guarantee (laws 2, 4 and 5)."""
    if not losses:
        return
    least, at_end = _held_at_least(snapshot, plan), _held_at_end(snapshot, plan)
    lost: dict[tuple[str, bool, str], Held] = {}
    for loss in losses:
        open_to_it = options[loss.taker.uid]
        claims = _claims(snapshot, loss, losses, open_to_it, least=least, at_end=at_end)
        judged = _judged(snapshot, loss, claims)
        for slug, own in _sides(snapshot, loss.job.spec.tenant, loss.taker.tenant):
            for flavor in judged:
                found = lost.setdefault((slug, own, flavor), Counter())
                amounts = Counter[tuple[str, str]]()
                charge(
                    amounts,
                    loss.job.spec,
                    snapshot.fleet.flavor_held(loss.job.replicas),
                    loss.replicas,
                )
                found[loss.job.spec.tenant, flavor] += amounts[loss.job.spec.tenant, flavor]
    for (slug, own, flavor), amounts in lost.items():
        left = Counter(at_end)
        left.subtract(amounts)
        above = _above(snapshot, slug, flavor, left, own=own)
        require(above >= 0, f"{slug!r} is pushed below its quota of {flavor!r}")


def _sides(snapshot: Snapshot, loser: str, taker: str) -> list[tuple[str, bool]]:
    """Return the tenants on the loser's side, and whether only their own jobs count."""
    if loser == taker:
        return []
    theirs = upwards(snapshot, taker)
    side = [(slug, False) for slug in upwards(snapshot, loser) if slug not in theirs]
    return side or [(loser, True)]


def _judged(snapshot: Snapshot, loss: _Loss, claims: Sequence[str]) -> set[str]:
    """Return the flavors with quotas in which the loser is judged."""
    main = snapshot.fleet.flavor_held(loss.job.replicas) or CPU_FLAVOR
    wanted = {CPU_FLAVOR, *claims}
    limited = {name for tenant in snapshot.tenants for name in tenant.quotas}
    return ({main} if main in wanted else {main, CPU_FLAVOR}) & limited


def _held_at_end(snapshot: Snapshot, plan: Plan) -> Held:
    """Return the most that tenants can hold once all that was told to leave has left.

    What this plan takes away is still in, and what it promises may be of any flavor allowed.
    """
    held, jobs = Held(), {job.uid: job for job in snapshot.pending}
    for job in snapshot.running:
        stays = len(job.replicas) if job.ending_s is None else len(job.keeps)
        charge(held, job.spec, snapshot.fleet.flavor_held(job.replicas), stays)
    for start in plan.starts:
        charge(held, jobs[start.uid], start.flavor, len(start.replicas))
    for pending in plan.pending:
        if pending.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS:
            spec = jobs[pending.uid]
            held[spec.tenant, CPU_FLAVOR] += spec.shape.cpu_milli * spec.replicas_min
            for flavor in options_of(snapshot, spec):
                held[spec.tenant, flavor] += spec.shape.device_milli * spec.replicas_min
    return held


def _held_at_least(snapshot: Snapshot, plan: Plan) -> Held:
    """Return the least that tenants can hold once all that was told to leave has left."""
    held, told = Held(), {one.uid: 0 for one in plan.preempts}
    told |= {one.uid: len(one.replicas) for one in plan.resizes if one.beneficiary}
    for job in snapshot.running:
        stays = len(job.replicas) if job.ending_s is None else len(job.keeps)
        stays = told.get(job.spec.uid, stays)
        charge(held, job.spec, snapshot.fleet.flavor_held(job.replicas), stays)
    return held


def _above(snapshot: Snapshot, slug: str, flavor: str, held: Held, *, own: bool) -> int:
    """Return what a tenant, or its own jobs alone, hold above what is guaranteed to them."""
    if own:
        line = next(t for t in snapshot.tenants if t.slug == slug).quotas.get(flavor)
        return held[slug, flavor] - (line.nominal if line else 0)
    used, owned = _standing(snapshot, flavor, held)
    return used[slug] - owned[slug]


def _standing(snapshot: Snapshot, flavor: str, held: Held) -> tuple[dict[str, int], dict[str, int]]:
    """Return what each tenant uses and owns with those below it, as Kueue counts both."""
    used = {tenant.slug: held[tenant.slug, flavor] for tenant in snapshot.tenants}
    owned = dict.fromkeys(used, 0)
    for tenant in reversed(snapshot.tenants):
        slug, line = tenant.slug, tenant.quotas.get(flavor)
        owned[slug] += line.nominal if line else 0
        lends = line.lending_limit if line else None
        kept = 0 if lends is None else max(0, owned[slug] - lends)
        if tenant.parent is not None:
            owned[tenant.parent] += owned[slug] - kept
            used[tenant.parent] += max(0, used[slug] - kept)
    return used, owned


def _without(
    replicas: Sequence[ReplicaPlacement], some: Sequence[ReplicaPlacement]
) -> tuple[ReplicaPlacement, ...]:
    """Return the replicas but for some of them, each counted as often as it occurs."""
    return tuple((Counter(replicas) - Counter(some)).elements())
