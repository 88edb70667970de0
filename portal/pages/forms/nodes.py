"""Why an admin changes what a node takes."""

from django import forms
from django.utils.translation import gettext_lazy as _

REASON_LIMIT = 500


class ReasonForm(forms.Form):
    """A reason; people read it beside the node."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_LIMIT,
        required=False,
        help_text=_("Everybody reads it beside the node."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
