"""How fast a class of jobs runs on a flavor."""

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.pages.forms.tenants import ServiceForm


class ThroughputForm(ServiceForm):
    """One row of the table; a class and flavor that is there already is said anew."""

    job_class = forms.CharField(
        label=_("Class of jobs"), max_length=80, help_text=_("Or a kind, such as training.")
    )
    flavor = forms.CharField(label=_("Flavor"), max_length=80)
    throughput = forms.FloatField(
        label=_("Throughput"),
        min_value=0,
        max_value=1,
        help_text=_("Against the flavor it is fastest on: more than 0, at most 1."),
    )
    note = forms.CharField(
        label=_("Note"),
        max_length=200,
        required=False,
        help_text=_("Where the number comes from."),
    )
