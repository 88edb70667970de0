"""The numbers that tune a cluster's decisions, as fields: empty stands for the default."""

from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from portal.pages.forms.tenants import ServiceForm
from portal.pages.weight_words import TITLES, WORDS
from scheduler.weights import GROUPS, Bound


def _key(group: str, name: str) -> str:
    return f"{group}_{name}"


def _names() -> Iterator[tuple[str, str, Bound]]:
    for group, bounds in GROUPS.items():
        for name, bound in bounds.items():
            yield group, name, bound


def _field(bound: Bound, label: Any, does: Any) -> forms.Field:
    default = f"{bound.default:.12g}"
    bounds: dict[str, Any] = {"min_value": 0, "max_value": int(bound.most)}
    field = (forms.IntegerField if bound.whole else forms.FloatField)(
        label=label,
        required=False,
        help_text=format_lazy(_("{does} Default: {default}."), does=does, default=default),
        **bounds,
    )
    field.widget.attrs["placeholder"] = default
    return field


def weight_initial(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return field -> what differs from its default."""
    groups = stored if isinstance(stored, dict) else {}
    return {
        _key(group, name): groups[group][name]
        for group, name, bound in _names()
        if isinstance(groups.get(group), dict) and bound.takes(groups[group].get(name))
    }


class WeightsForm(ServiceForm):
    """A form with a field for each number that tunes decisions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for group, name, bound in _names():
            self.fields[_key(group, name)] = _field(bound, *WORDS[group][name])

    def taken_weights(self, values: dict[str, Any]) -> dict[str, dict[str, float | None]]:
        """Take the numbers out of cleaned values; None stands for the default."""
        taken: dict[str, dict[str, float | None]] = {group: {} for group in GROUPS}
        for group, name, _bound in _names():
            taken[group][name] = values.pop(_key(group, name))
        return taken

    def add_refusals(self, fields: Mapping[str, list[str]]) -> None:
        """Show what a service refused beside its field, or above the form."""
        keys = {f"weights.{group}.{name}": _key(group, name) for group, name, _bound in _names()}
        super().add_refusals({keys.get(path, path): texts for path, texts in fields.items()})

    def plain_fields(self) -> list[forms.BoundField]:
        """Return the fields of everything else."""
        tuned = {_key(group, name) for group, name, _bound in _names()}
        return [self[name] for name in self.fields if name not in tuned]

    def weight_groups(self) -> list[dict[str, Any]]:
        """Return the fields by group, each group with its title."""
        return [
            {"title": TITLES[group], "fields": [self[_key(group, name)] for name in bounds]}
            for group, bounds in GROUPS.items()
        ]

    def has_wrong_weights(self) -> bool:
        """Return whether a number was refused."""
        return any(_key(group, name) in self.errors for group, name, _bound in _names())
