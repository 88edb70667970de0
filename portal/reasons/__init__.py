"""The catalogue of reasons: every code of the engine and the executors as one plain sentence.

The engine yields codes and numbers; this is the one place that gives them words, translated, in
people's units, for pages, API and websockets alike.
"""

from typing import Any

from django.utils.translation import gettext as _

from portal.reasons.amounts import Numbers, amount, request
from portal.reasons.clashes import clash_sentence
from portal.reasons.endings import (
    ENDINGS,
    EVICTIONS,
    end_sentence,
    event_sentence,
    eviction_sentence,
    news_word,
)
from portal.reasons.remedies import REMEDIES
from portal.reasons.waiting import WAITING
from scheduler.core.resources import CPU_FLAVOR

__all__ = [
    "ENDINGS",
    "EVICTIONS",
    "REMEDIES",
    "WAITING",
    "amount",
    "clash_sentence",
    "end_sentence",
    "event_sentence",
    "eviction_sentence",
    "fields_at_fault",
    "news_word",
    "pending_view",
    "remedy_sentence",
    "request",
    "sentence",
]


def sentence(pending: Numbers) -> str:
    """Return why a job waits or can never run.

    Args:
        pending: a waiting reason as stored with a job: code and evidence.
    """
    say = WAITING.get(str(pending.get("code", "")))
    if say is None:
        return _("It waits; the reason is not known.")
    return say(pending.get("evidence") or {})


def remedy_sentence(remedy: Numbers) -> str:
    """Return what would help, and whether the job would start at once.

    Args:
        remedy: code and params, as stored with a job.
    """
    params = remedy.get("params") or {}
    say = REMEDIES.get(str(remedy.get("code", "")))
    if say is None:
        return _("Ask an admin.")
    if params.get("starts_now"):
        return _("%(change)s, and it starts now.") % {"change": say(params)}
    return _("%(change)s.") % {"change": say(params)}


def pending_view(pending: Numbers | None) -> dict[str, Any] | None:
    """Return a stored waiting reason as people get it, None where there is none.

    Returns:
        code, message, evidence, remedies ({code, message, params}), expected_start_p50,
        expected_start_p90 (ISO 8601 or None) and position (1 = first; 0 = not in the queue).
    """
    if not pending or not pending.get("code"):
        return None
    return {
        "code": pending["code"],
        "message": sentence(pending),
        "evidence": pending.get("evidence") or {},
        "remedies": [
            {"code": r["code"], "message": remedy_sentence(r), "params": r.get("params") or {}}
            for r in pending.get("remedies") or ()
        ],
        "expected_start_p50": pending.get("expected_start_p50"),
        "expected_start_p90": pending.get("expected_start_p90"),
        "position": pending.get("position", 0),
    }


_FIELD_OF_MISTAKE = {
    "unknown_tenant": "tenant",
    "fraction_of_many": "gpu_milli",
    "topology": "required_topology",
}


def fields_at_fault(pending: Numbers) -> tuple[str, ...]:
    """Return the fields of a request to change so that a job that never fits might."""
    code, evidence = str(pending.get("code", "")), pending.get("evidence") or {}
    if code == "no_matching_flavor":
        return ("flavors",) if evidence.get("asked", {}).get("flavors") else ("devices",)
    if code == "exceeds_max_quota":
        return ("cpu_milli",) if evidence.get("flavor") == CPU_FLAVOR else ("devices",)
    if code == "exceeds_power_cap":
        return ("devices",)
    if code == "misconfigured":
        mistake = str(evidence.get("mistake", ""))
        return (_FIELD_OF_MISTAKE.get(mistake, mistake),)
    if code == "never_fits":
        return _larger_than_a_node(evidence)
    return ()


def _larger_than_a_node(evidence: Numbers) -> tuple[str, ...]:
    asked, largest = evidence.get("asked", {}), evidence.get("largest_node", {})
    most = dict(largest, devices=max(largest.get("devices", {}).values(), default=0))
    names = tuple(
        name
        for name in ("cpu_milli", "memory_mib", "devices", "gpu_memory_mib")
        if asked.get(name, 0) > most.get(name, 0)
    )
    if names:
        return names
    if "topology" in evidence:
        return ("required_topology",)
    return ("replicas",) if asked.get("replicas", 1) > 1 else ("devices",)
