"""The form of a quota: amounts in devices or cores, as people count them."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.pages.forms.tenants import ServiceForm
from telemetry import units
from tenants.values import MILLI_MOST

AMOUNT = units.Quantity("quota", "an amount", "4 or 2.5", 0, MILLI_MOST, "m")


class MilliField(forms.CharField):
    """An amount of devices or cores, `4` or `2.5`; gives thousandths, None where empty."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {"inputmode": "decimal", "autocomplete": "off"}
        super().__init__(widget=forms.TextInput(attrs=attrs), **kwargs)

    def clean(self, value: Any) -> int | None:
        """Return thousandths."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return units.parse_gpu_milli(text, AMOUNT)
        except units.InvalidQuantityError as wrong:
            raise ValidationError(
                _("%(value)s is not an amount; write 4 or 2.5.") % {"value": wrong.value}
            ) from wrong


class QuotaForm(ServiceForm):
    """What a tenant owns of a flavor."""

    tenant = forms.ChoiceField(label=gettext_lazy("Tenant"))
    flavor = forms.ChoiceField(label=gettext_lazy("Flavor"))
    nominal = MilliField(
        label=gettext_lazy("Owns"), help_text=gettext_lazy("Devices, or cores of CPU.")
    )
    borrowing_limit = MilliField(
        label=gettext_lazy("May borrow"), required=False, help_text=gettext_lazy("Empty: no limit.")
    )
    lending_limit = MilliField(
        label=gettext_lazy("May lend"), required=False, help_text=gettext_lazy("Empty: all of it.")
    )

    def __init__(
        self,
        *args: Any,
        tenants: Iterable[tuple[str, str]] = (),
        flavors: Iterable[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (("tenant", tenants), ("flavor", flavors)):
            field = self.fields[name]
            if isinstance(field, forms.ChoiceField):
                field.choices = list(choices)
