"""What audit rows name, in words: kinds of objects and their fields."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from telemetry.choices import Scheduling
from tenants.choices import Role

Words = Mapping[str, str | Promise]

KINDS: Final[Words] = {
    "tenant": _("tenant"),
    "membership": _("membership"),
    "quota": _("quota"),
    "schedulingpolicy": _("scheduling policy"),
    "priorityclass": _("priority class"),
    "throughput": _("throughput"),
    "pairing": _("pairing"),
    "user": _("account"),
    "node": _("node"),
}
"""Model of an audit row -> what it is."""

FIELDS: Final[Words] = {
    "name": _("name"),
    "slug": _("short name"),
    "parent": _("tenant above"),
    "fair_weight": _("fair weight"),
    "queue_priority": _("queue priority"),
    "tenant": _("tenant"),
    "user": _("account"),
    "role": _("role"),
    "cluster": _("cluster"),
    "flavor": _("flavor"),
    "nominal": _("nominal"),
    "borrowing_limit": _("borrowing limit"),
    "lending_limit": _("lending limit"),
    "strategy": _("strategy"),
    "budget_s": _("seconds a decision may take"),
    "placement": _("placement"),
    "kinds": _("strategies of kinds"),
    "shadow": _("shadow"),
    "solver": _("solver"),
    "power_cap_w": _("power cap in watts"),
    "weights": _("weights"),
    "preemption_fence": _("preemption fence"),
    "preempt_by_priority": _("higher priority evicts lower"),
    "preempt_by_reclaim": _("tenants claim their quota back"),
    "preempt_by_fair_share": _("tenants even out what they borrow"),
    "preempt_delay_s": _("wait before evicting"),
    "preempt_min_runtime_s": _("least run time"),
    "preempt_grace_s": _("grace"),
    "preempt_most_evictions": _("most evictions of a job"),
    "job_class": _("class of jobs"),
    "throughput": _("throughput"),
    "class_a": _("class"),
    "class_b": _("other class"),
    "throughput_a": _("throughput of the class"),
    "throughput_b": _("throughput of the other"),
    "note": _("note"),
    "value": _("value"),
    "preemptible": _("preemptible"),
    "is_default": _("default"),
    "scheduling": _("what it takes"),
    "scheduling_reason": _("reason"),
}
"""Field of an audit row -> its name; others keep theirs."""

VALUES: Final[Words] = {
    "True": _("yes"),
    "False": _("no"),
    **dict(Role.choices),
    **dict(Scheduling.choices),
}
"""Value of a field -> in words; others stay as they are."""


def spoken(words: Words, code: str) -> str:
    """Return a code in words; itself where it has none."""
    return str(words.get(code, code))
