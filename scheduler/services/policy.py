"""How decisions are made on a cluster, changed by who runs the portal."""

import math
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from scheduler import events
from scheduler.choices import STRATEGY_NAMES, PlacementScore
from scheduler.decide.bounds import MOST_POWER_W
from scheduler.models import SchedulingPolicy
from scheduler.services.setup import policy_ensure
from scheduler.services.strategies import checked_strategies, refuse_two
from scheduler.services.weights import changed_weights
from scheduler.weights import differing
from telemetry.models import Cluster
from tenants import policies
from tenants.audit import acting
from tenants.errors import InvalidValueError, NotAllowedError

BUDGET_MOST_S = 60.0
UNCHANGED = object()

PREEMPTION_FLAGS = ("preempt_by_priority", "preempt_by_reclaim", "preempt_by_fair_share")
PREEMPTION_MOST = {
    "preempt_delay_s": 86_400,
    "preempt_min_runtime_s": 604_800,
    "preempt_grace_s": 3_600,
    "preempt_most_evictions": 100,
}
"""Settings of the preemption policy -> the most that they take; the least is 0."""

_COUNTS = frozenset({"preempt_most_evictions"})


def policy_update(
    *,
    actor: User,
    cluster: Cluster,
    strategy: object = None,
    budget_s: object = None,
    placement: object = None,
    kinds: object = None,
    shadow: object = None,
    solver: object = None,
    power_cap_w: object = UNCHANGED,
    weights: object = UNCHANGED,
    **preemption: object,
) -> SchedulingPolicy:
    """Change a cluster's policy; None leaves most values as they are. The next cycle obeys.

    Args:
        actor: who.
        cluster: whose.
        strategy: decides all kinds of jobs but those named in `kinds`.
        budget_s: seconds that a decision may take.
        placement: one of PlacementScore.
        kinds: job kind -> strategy, of all kinds that another strategy decides.
        shadow: strategy that decides beside for comparison; "" = none.
        solver: of the optimising strategy.
        power_cap_w: watts of board power that may be allocated; None = no cap.
        weights: group -> name -> number, see `scheduler.weights.GROUPS`; what is not named stays,
            None in the place of a number, a group or the whole = its defaults.
        **preemption: any of PREEMPTION_FLAGS and PREEMPTION_MOST.

    Raises:
        NotAllowedError: the actor does not run the portal.
        InvalidValueError: a value can't be taken.
    """
    if not policies.is_platform_admin(actor):
        raise NotAllowedError(_("Only who runs the portal may change how a cluster decides."))
    wanted = _checked(strategy, budget_s, placement, preemption)
    wanted |= checked_strategies(kinds, shadow, solver) | _checked_cap(power_cap_w)
    with transaction.atomic(), acting(actor):
        policy_ensure(cluster=cluster)
        row = SchedulingPolicy.objects.select_for_update().get(cluster=cluster)
        refuse_two(wanted.get("strategy", row.strategy), wanted.get("kinds", row.kinds))
        if weights is not UNCHANGED:
            wanted["weights"] = differing(changed_weights(row.weights, weights))
        for name, value in wanted.items():
            setattr(row, name, value)
        row.save(update_fields=list(wanted))
        events.changed(cluster_slug=cluster.slug)
    return row


def _checked(
    strategy: object, budget_s: object, placement: object, preemption: Mapping[str, object]
) -> dict[str, Any]:
    wrong: dict[str, list[str]] = {}
    wanted: dict[str, Any] = {}
    for name, value, choices in (
        ("strategy", strategy, STRATEGY_NAMES),
        ("placement", placement, tuple(PlacementScore.values)),
    ):
        if value is not None and value not in choices:
            wrong[name] = [_("Choose one of %(choices)s.") % {"choices": ", ".join(choices)}]
        elif value is not None:
            wanted[name] = value
    if budget_s is not None and not _is_budget(budget_s):
        wrong["budget_s"] = [
            _("Write seconds, more than 0 and at most %(most)s.") % {"most": int(BUDGET_MOST_S)}
        ]
    elif isinstance(budget_s, (int, float)):
        wanted["budget_s"] = float(budget_s)
    for name, value in preemption.items():
        if value is None:
            continue
        refusal = _preemption_refusal(name, value)
        if refusal:
            wrong[name] = [refusal]
        else:
            wanted[name] = value
    if wrong:
        raise InvalidValueError(wrong)
    return wanted


def _checked_cap(power_cap_w: object) -> dict[str, float | None]:
    if power_cap_w is UNCHANGED:
        return {}
    if power_cap_w is None:
        return {"power_cap_w": None}
    if isinstance(power_cap_w, (int, float)) and _is_number(power_cap_w):
        watts = float(power_cap_w)
        if 0 <= watts <= MOST_POWER_W:
            return {"power_cap_w": watts}
    raise InvalidValueError.of("power_cap_w", _("Write watts, 0 or more, or nothing."))


def _is_number(value: float) -> bool:
    return not isinstance(value, bool) and math.isfinite(value)


def _preemption_refusal(name: str, value: object) -> str:
    """Return what is wrong with a value of the preemption policy, "" where nothing is."""
    if name in PREEMPTION_FLAGS:
        return "" if isinstance(value, bool) else _("Write true or false.")
    if name not in PREEMPTION_MOST:
        return _("There is no such field; remove it.")
    most, kinds = PREEMPTION_MOST[name], (int,) if name in _COUNTS else (int, float)
    if isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value <= most:
        return ""
    if name in _COUNTS:
        return _("Write a whole number from 0 to %(most)s.") % {"most": most}
    return _("Write seconds from 0 to %(most)s.") % {"most": most}


def _is_budget(value: object) -> bool:
    return isinstance(value, (int, float)) and _is_number(value) and 0 < value <= BUDGET_MOST_S
