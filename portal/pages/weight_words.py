"""The numbers that tune a cluster's decisions, in words."""

import json
from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from scheduler.choices import JobKind
from scheduler.weights import GROUPS

TITLES: Final[Mapping[str, Promise]] = {
    "order": _("Order of the queue"),
    "objective": _("Objective of the optimising strategy"),
    "qos": _("Quality of service by kind of job"),
    "queue": _("How far down the queue is planned"),
}
"""Group -> its title."""

_QOS_HELP: Final = _("0 to 1; multiplied with the weight of quality of service.")

WORDS: Final[Mapping[str, Mapping[str, tuple[Promise, Promise]]]] = {
    "order": {
        "priority_class": (
            _("Priority class"),
            _("Weight of the job's priority class."),
        ),
        "fair_share": (
            _("Fair share"),
            _("Weight of how little its tenant has used of late, for its fair weight."),
        ),
        "age": (_("Age"), _("Weight of how long the job has waited.")),
        "size": (_("Size"), _("Weight of how much of the fleet the job asks for.")),
        "qos": (_("Quality of service"), _("Weight of the factor of its kind.")),
        "age_max_s": (
            _("Full age, seconds"),
            _("Who has waited so long has the full weight of age; 0: nobody gets any."),
        ),
    },
    "objective": {
        "utilisation": (_("Utilisation"), _("Weight of how much of the fleet is allocated.")),
        "performance": (_("Performance"), _("Weight of how fast jobs run where they are put.")),
        "fairness": (_("Fairness"), _("Weight of even shares among tenants.")),
        "energy": (_("Energy"), _("Weight against board power.")),
    },
    "qos": {kind.value: (kind.label, _QOS_HELP) for kind in JobKind},
    "queue": {
        "backfill_depth": (
            _("Jobs planned ahead"),
            _("So many blocked jobs get a planned start and a reservation."),
        ),
        "remedy_depth": (
            _("Jobs told what would help"),
            _("For so many blocked jobs, the first of the queue, changes are tried."),
        ),
        "patience_s": (
            _("Patience, seconds"),
            _("Who has waited so long has its turn as under the rules."),
        ),
    },
}
"""Group -> name -> (label, what it does)."""


def weights_text(stored: str) -> str:
    """Return the numbers of an audit row in words; what can't be read stays as it is."""
    try:
        groups = json.loads(stored)
    except ValueError:
        return stored
    if not isinstance(groups, dict):
        return stored
    parts = [
        f"{TITLES[group]}: {WORDS[group][name][0]} {numbers[name]}"
        for group in GROUPS
        if isinstance(numbers := groups.get(group), dict)
        for name in GROUPS[group]
        if name in numbers
    ]
    return "; ".join(parts) or stored
