"""Says in the reader's language what is wrong with an amount: value, field's bounds, remedy."""

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from telemetry import units

SENTENCES: dict[str, str] = {
    "malformed": gettext_noop("%(value)s is not an amount that can be read; write %(instead)s."),
    "not_plain_digits": gettext_noop(
        "%(value)s holds digits other than 0-9; write it in plain digits, such as %(instead)s."
    ),
    "decimal_unit": gettext_noop(
        "%(value)s is in a decimal unit; memory is counted in binary ones: write %(instead)s."
    ),
    "too_fine": gettext_noop(
        "%(value)s is finer than the smallest step; write %(instead)s, the next larger amount."
    ),
    "too_small": gettext_noop("%(value)s is too little; ask for %(instead)s or more."),
    "too_large": gettext_noop("%(value)s is too much; ask for %(instead)s or less."),
    "not_an_integer": gettext_noop(
        "%(value)s is not a whole number; send one without quotes, such as %(instead)s."
    ),
}
"""Code of `telemetry.units.InvalidQuantityError` -> sentence."""

_AS_TYPED: dict[str, Callable[[int], str]] = {
    "cpu_milli": units.format_cpu,
    "gpu_milli": units.format_devices_milli,
    "memory_mib": units.format_memory,
    "gpu_memory_mib": units.format_memory,
    "time_limit_s": units.format_duration,
    "checkpoint_interval_s": units.format_duration,
}


def amount_refusal(
    wrong: units.InvalidQuantityError, quantity: units.Quantity, *, text: bool
) -> str:
    """Return one sentence that names the value and what to write instead.

    Args:
        wrong: what the amount was refused for.
        quantity: of the field.
        text: amounts are text as typed in a form, not JSON integers.
    """
    return _(SENTENCES[wrong.code]) % {
        "value": wrong.value,
        "instead": _instead(wrong, quantity, text=text),
    }


def _instead(wrong: units.InvalidQuantityError, quantity: units.Quantity, *, text: bool) -> str:
    bounds = {"too_small": quantity.minimum, "too_large": quantity.maximum}
    if wrong.code in bounds:
        bound = bounds[wrong.code]
        return _AS_TYPED.get(quantity.name, str)(bound) if text else str(bound)
    examples = wrong.suggestion.split(" or ")
    if len(examples) == 1:
        return examples[0]
    return _("%(first)s or %(second)s") % {"first": examples[0], "second": examples[1]}
