"""Runs a cluster's shadow strategy: after the cycle, without its lock, and never in its way."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import asked_of
from scheduler.decide.shadow import Comparison, compare
from scheduler.models import Cycle, ShadowPlan
from scheduler.services.stored import stored_float, stored_text

SHOWN = 50
"""Of so many jobs the difference is written down; of all others only their number."""

KEEP_S = 60.0
"""So much longer than its budget a shadow may take before another one is run beside it."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a cycle decided, and on what."""

    cycle: Cycle
    snapshot: Snapshot
    policy: Policy
    plan: Plan


def wanted(decided: Decided) -> bool:
    """Return whether there is a shadow to run: one that differs from who was asked."""
    shadow, policy = decided.policy.shadow, decided.policy
    return bool(shadow and decided.snapshot.pending) and (
        shadow != asked_of(decided.snapshot, policy) or bool(policy.kinds)
    )


def run(decided: Decided, *, clock: Callable[[], float]) -> ShadowPlan | None:
    """Decide with the shadow and write down how it differs; None where nothing was written.

    One shadow at a time runs for a cluster; a cycle that is over meanwhile has none. Whatever goes
    wrong is logged: nobody waits for a shadow.

    Args:
        decided: the cycle that is over.
        clock: monotonic seconds.
    """
    slug, budget_s = decided.snapshot.cluster, decided.policy.budget_s
    key = f"shadow:{slug}"
    if not cache.add(key, 1, timeout=budget_s + KEEP_S):
        return None
    try:
        began_s = clock()
        found = compare(
            decided.snapshot,
            decided.policy,
            decided.plan,
            now_s=decided.plan.now_s,
            budget_s=budget_s,
            clock=clock,
        )
        return _write(decided, found, clock() - began_s)
    except Exception:  # a shadow is a plug-in, too, and nobody waits for it
        logger.exception("shadow failed cluster=%s strategy=%s", slug, decided.policy.shadow)
        return None
    finally:
        cache.delete(key)


def _write(decided: Decided, found: Comparison, wall_s: float) -> ShadowPlan:
    solver = found.plan.solver
    return ShadowPlan.objects.create(
        cycle=decided.cycle,
        strategy=decided.policy.shadow,
        answered_by=solver.strategy,
        status=solver.status,
        note=stored_text(solver.note),
        objective=stored_float(found.objective_shadow),
        objective_carried=stored_float(found.objective),
        start_count=len(found.plan.starts),
        wall_ms=round(wall_s * 1000),
        differences={
            "only_carried": _some(found.only_carried),
            "only_shadow": _some(found.only_shadow),
            "moved": _some(found.moved),
        },
    )


def _some(uids: tuple[str, ...]) -> dict[str, Any]:
    return {"count": len(uids), "jobs": list(uids[:SHOWN])}
