"""How decisions are made on a cluster."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.pages.cycle_words import CYCLE_WORDS
from portal.pages.forms.weights import WeightsForm
from scheduler.choices import STRATEGY_NAMES, JobKind, PlacementScore, Solver
from scheduler.services.policy import BUDGET_MOST_S, PREEMPTION_MOST

STRATEGY_CHOICES = [(name, CYCLE_WORDS.get(name, name)) for name in STRATEGY_NAMES]


def _seconds(name: str, label: Any, help_text: Any) -> forms.FloatField:
    return forms.FloatField(
        label=label, min_value=0, max_value=PREEMPTION_MOST[name], help_text=help_text
    )


class PolicyForm(WeightsForm):
    """Strategies, time and placement of a cluster's cycles, and whom they may evict."""

    strategy = forms.ChoiceField(
        label=_("Strategy"),
        choices=STRATEGY_CHOICES,
    )
    budget_s = forms.FloatField(
        label=_("Seconds a decision may take"), min_value=0.01, max_value=BUDGET_MOST_S
    )
    placement = forms.ChoiceField(
        label=_("Placement"),
        choices=PlacementScore.choices,
        help_text=_(
            "pack fills nodes one by one, spread evens them out, learnt prices keep room for the "
            "jobs that usually come."
        ),
    )
    shadow = forms.ChoiceField(
        label=_("Shadow"),
        choices=[("", _("none")), *STRATEGY_CHOICES],
        required=False,
        help_text=_("Decides beside after each cycle, for comparison only."),
    )
    solver = forms.ChoiceField(
        label=_("Solver"),
        choices=Solver.choices,
        help_text=_("Of the optimising strategy; HiGHS solves where CBC is not installed."),
    )
    preempt_by_reclaim = forms.BooleanField(
        label=_("Tenants claim their quota back"),
        required=False,
        help_text=_("Who is below its quota may have jobs evicted that borrow from it."),
    )
    preempt_by_fair_share = forms.BooleanField(
        label=_("Tenants even out what they borrow"),
        required=False,
        help_text=_("Who borrows less for its weight may have jobs evicted of who borrows more."),
    )
    preempt_by_priority = forms.BooleanField(
        label=_("Higher priority evicts lower"),
        required=False,
        help_text=_("Never jobs of a priority class that is not preemptible."),
    )
    preempt_delay_s = _seconds(
        "preempt_delay_s",
        _("Wait before evicting, seconds"),
        _("A job waits so long before anybody is evicted for it."),
    )
    preempt_min_runtime_s = _seconds(
        "preempt_min_runtime_s",
        _("Least run time, seconds"),
        _("Nobody is evicted who has run for less since the last start."),
    )
    preempt_grace_s = _seconds(
        "preempt_grace_s",
        _("Grace, seconds"),
        _("From the order to end to the end: time for a checkpoint."),
    )
    preempt_most_evictions = forms.IntegerField(
        label=_("Most evictions of a job"),
        min_value=0,
        max_value=PREEMPTION_MOST["preempt_most_evictions"],
        help_text=_("A job that was evicted so often is left alone."),
    )

    power_cap_w = forms.FloatField(
        label=_("Power cap in watts"),
        min_value=0,
        required=False,
        help_text=_("Nothing starts above it; board power counts. Empty: no cap."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind in JobKind:
            self.fields[f"kind_{kind.value}"] = forms.ChoiceField(
                label=_("Strategy for jobs of kind %(kind)s") % {"kind": kind.label},
                choices=[("", _("as the cluster")), *STRATEGY_CHOICES],
                required=False,
            )

    def wanted(self) -> dict[str, Any]:
        """Return what `policy_update` takes."""
        values = dict(self.cleaned_data)
        weights = self.taken_weights(values)
        kinds = {kind.value: values.pop(f"kind_{kind.value}") for kind in JobKind}
        given = {kind: name for kind, name in kinds.items() if name}
        return values | {"kinds": given, "weights": weights}
