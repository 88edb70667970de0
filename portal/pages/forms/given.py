"""What who runs the portal says of classes of jobs: each form is one row of a table."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.pages.forms.tenants import ServiceForm


class GivenForm(ServiceForm):
    """A row with a note; what is there already is said anew."""

    note = forms.CharField(
        label=_("Note"),
        max_length=200,
        required=False,
        help_text=_("Where the number comes from."),
    )

    def __init__(self, data: Any = None) -> None:
        # Several of them are on one page: ids of their own, and the note last in each.
        super().__init__(data, auto_id=f"{type(self).__name__.lower()}_%s")
        self.order_fields([name for name in self.fields if name != "note"])


class ThroughputForm(GivenForm):
    """How fast a class of jobs runs on a flavor."""

    job_class = forms.CharField(
        label=_("Class of jobs"), max_length=80, help_text=_("Or a kind, such as training.")
    )
    flavor = forms.ChoiceField(label=_("Flavor"))
    throughput = forms.FloatField(
        label=_("Throughput"),
        min_value=0,
        max_value=1,
        help_text=_("Against the flavor it is fastest on: more than 0, at most 1."),
    )

    def __init__(self, data: Any = None, *, flavors: Iterable[tuple[str, str]]) -> None:
        super().__init__(data)
        field = self.fields["flavor"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "–"), *flavors]


class PairingForm(GivenForm):
    """How fast two classes of jobs run beside each other on one device."""

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
