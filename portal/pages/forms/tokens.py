"""The form of a new API token."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class TokenForm(forms.Form):
    """How long a token is to live."""

    days = forms.IntegerField(
        label=_("Days until it expires"),
        min_value=1,
        max_value=3650,
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["days"].initial = settings.TOKEN_DAYS
