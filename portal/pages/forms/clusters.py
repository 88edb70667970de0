"""How decisions are made on a cluster."""

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.pages.cycle_words import CYCLE_WORDS, PLACEMENT_WORDS
from portal.pages.forms.tenants import ServiceForm
from scheduler.decide.strategies.base import STRATEGIES
from scheduler.services.policy import BUDGET_MOST_S, PLACEMENTS


class PolicyForm(ServiceForm):
    """Strategy, time and placement of a cluster's cycles."""

    strategy = forms.ChoiceField(
        label=_("Strategy"),
        choices=[(name, CYCLE_WORDS.get(name, name)) for name in sorted(STRATEGIES)],
    )
    budget_s = forms.FloatField(
        label=_("Seconds a decision may take"), min_value=0.01, max_value=BUDGET_MOST_S
    )
    placement = forms.ChoiceField(
        label=_("Placement"),
        choices=[(name, PLACEMENT_WORDS[name]) for name in PLACEMENTS],
        help_text=_("pack fills nodes one by one, spread evens them out."),
    )
