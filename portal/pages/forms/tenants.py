"""Forms of tenants and members; the services check what they give."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from tenants.choices import Role
from tenants.errors import DomainError, InvalidValueError
from tenants.values import NAME_LIMIT, PRIORITY_MOST, WEIGHT_MOST

Choices = Iterable[tuple[str, str]]


class ServiceForm(forms.Form):
    """A form whose values a service checks."""

    def carried_out(self, service: Callable[[], object]) -> bool:
        """Return whether the service took what was typed; else the form says why not."""
        if not self.is_valid():
            return False
        try:
            service()
        except InvalidValueError as wrong:
            self.add_refusals(wrong.fields)
        except DomainError as error:
            self.add_error(None, str(error))
        else:
            return True
        return False

    def add_refusals(self, fields: Mapping[str, list[str]]) -> None:
        """Show what a service refused beside its field, or above the form."""
        for name, texts in fields.items():
            for text in texts:
                self.add_error(name if name in self.fields else None, text)


class TenantForm(ServiceForm):
    """A new tenant."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LIMIT)
    slug = forms.CharField(
        label=_("Short name"), max_length=63, help_text=_("a-z, 0-9 and -; it stays as it is.")
    )
    parent = forms.ChoiceField(label=_("Below"), required=False)
    fair_weight = forms.FloatField(
        label=_("Fair weight"), min_value=0, max_value=WEIGHT_MOST, initial=1
    )

    def __init__(self, *args: Any, parents: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _set_choices(self, "parent", parents)


class TenantEditForm(ServiceForm):
    """What may change of a tenant."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LIMIT)
    fair_weight = forms.FloatField(
        label=_("Fair weight"),
        min_value=0,
        max_value=WEIGHT_MOST,
        help_text=_("Weight in the division of what nobody else claims; 0 gets none of it."),
    )
    preemption_fence = forms.BooleanField(
        label=_("Preemption fence"),
        required=False,
        help_text=_("Its jobs, and those of the tenants below, evict nobody outside."),
    )

    queue_priority = forms.IntegerField(
        label=_("Queue priority"),
        required=False,
        min_value=0,
        max_value=PRIORITY_MOST,
        help_text=_(
            "Among its siblings, who has a higher one is served first of what nobody else claims."
        ),
    )

    def __init__(self, *args: Any, may_weigh: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("fair_weight", "queue_priority", "preemption_fence"):
            self.fields[name].disabled = not may_weigh


class TenantMoveForm(ServiceForm):
    """Where a tenant is to hang."""

    parent = forms.ChoiceField(label=_("Below"), required=False)

    def __init__(self, *args: Any, parents: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _set_choices(self, "parent", parents)


class MemberForm(ServiceForm):
    """A person and their role."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)

    def __init__(self, data: Any = None, *, auto_id: str = "member_%s") -> None:
        super().__init__(data, auto_id=auto_id)


class PersonForm(MemberForm):
    """A new account, added to the tenant at once."""

    def __init__(self, data: Any = None, *, auto_id: str = "person_%s") -> None:
        super().__init__(data, auto_id=auto_id)


def _set_choices(form: forms.Form, name: str, choices: Choices) -> None:
    field = form.fields[name]
    if isinstance(field, forms.ChoiceField):
        field.choices = list(choices)
