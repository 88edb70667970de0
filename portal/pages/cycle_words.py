"""The codes of a cycle in words: who answered, what the solver said, which step took how long."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

CYCLE_WORDS: Final[Mapping[str, str | Promise]] = {
    "rules": _("rules"),
    "optimising": _("optimising"),
    "optimal": _("optimal"),
    "feasible": _("feasible"),
    "rules_kept": _("rules kept"),
    "timeout": _("out of time"),
    "error": _("error"),
    "invalid": _("invalid plan"),
    "late": _("too late"),
    "not_needed": _("not needed"),
    "observe": _("observe"),
    "snapshot": _("snapshot"),
    "decide": _("decide"),
    "commit": _("commit"),
    "dispatch": _("dispatch"),
}
"""Strategies, statuses of `scheduler.core.plan.SolverReport`, steps of `scheduler.loop`."""


def cycle_word(code: str) -> str:
    """Return a code in words; itself where it has none, such as a strategy from elsewhere."""
    return str(CYCLE_WORDS.get(code, code))
