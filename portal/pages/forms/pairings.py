"""How fast two classes of jobs run beside each other on one device."""

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.pages.forms.tenants import ServiceForm


class PairingForm(ServiceForm):
    """One row of the table; a pair that is there already is said anew."""

    class_a = forms.CharField(
        label=_("Interference class"), max_length=80, help_text=_("As jobs name it.")
    )
    throughput_a = forms.FloatField(
        label=_("Its throughput beside the other"),
        min_value=0,
        max_value=1,
        help_text=_("Against having the device alone, 0 to 1; below 0.5 they never share one."),
    )
    class_b = forms.CharField(
        label=_("The other class"), max_length=80, help_text=_("Or the same once more.")
    )
    throughput_b = forms.FloatField(
        label=_("The other's throughput"), min_value=0, max_value=1, help_text=_("0 to 1.")
    )
    note = forms.CharField(
        label=_("Note"),
        max_length=200,
        required=False,
        help_text=_("Where the number comes from."),
    )
