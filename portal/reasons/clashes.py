"""Constraints that nothing can meet together, in words."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from portal.reasons.amounts import (
    Numbers,
    amount,
    flavors_text,
    joined,
    percent_text,
    request,
    watts_text,
)

# -- what runs, and a limit that was cut below it ------------------------------------------------


def _above_cap(numbers: Numbers) -> str:
    return _("What runs needs %(held)s of board power; the cap is %(cap)s.") % {
        name: watts_text(numbers.get(f"{name}_w")) for name in ("held", "cap")
    }


def _above_quota(numbers: Numbers) -> str:
    flavor = str(numbers.get("flavor", ""))
    return _("%(tenant)s runs %(used)s; its quota with all it may borrow is %(most)s.") % {
        "tenant": numbers.get("tenant", ""),
        "used": amount(flavor, int(numbers.get("used_milli", 0))),
        "most": amount(flavor, int(numbers.get("most_milli", 0))),
    }


LIMITS: dict[str, Callable[[Numbers], str]] = {
    "power_cap": _above_cap,
    "quota": _above_quota,
}
"""Limit that what runs has passed -> its sentence; it holds until enough jobs have ended."""

# -- what one job asks for, and can't have together ----------------------------------------------


def _throughput(numbers: Numbers) -> str:
    return _("at least %(percent)s %% of full speed") % {
        "percent": percent_text(numbers.get("asked", 0))
    }


WISHES: dict[str, Callable[[Numbers], str]] = {
    "nodes": lambda n: _("%(request)s on nodes of this size") % {"request": request(n)},
    "quota": lambda n: _("the quota of %(tenant)s") % {"tenant": n.get("tenant", "")},
    "power_cap": lambda n: _("the power cap of %(cap)s") % {"cap": watts_text(n.get("cap_w"))},
    "flavors": lambda n: (
        _("the flavor %(flavors)s") % {"flavors": flavors_text(n["asked"])}
        if n.get("asked")
        else _("several devices a replica, none of them a MIG slice")
    ),
    "min_throughput": _throughput,
}
"""Group of constraints of `scheduler.decide.clashes` -> what is asked for in it."""


def clash_sentence(clash: Numbers) -> str:
    """Return what clashes, and by which numbers.

    Args:
        clash: as stored with a cycle: constraints, uid and numbers.
    """
    names, numbers = clash.get("constraints") or (), clash.get("numbers") or {}
    if "running" in names:
        return next((LIMITS[name](numbers) for name in names if name in LIMITS), "")
    wishes = [WISHES[name](numbers.get(name) or {}) for name in names if name in WISHES]
    if len(wishes) == 1:
        return _("This alone rules it out: %(wish)s.") % {"wish": wishes[0]}
    return _("Each can be met alone, but not together: %(wishes)s.") % {"wishes": joined(wishes)}
