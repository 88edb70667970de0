"""How jobs end, go back to the queue and make room for others, in words."""

from collections.abc import Callable

from django.utils.translation import gettext as _

EVICTIONS: dict[str, Callable[[], str]] = {
    "preempted": lambda: _("It is to end for a job of higher priority."),
    "reclaimed": lambda: _("It is to end, as a tenant claims its quota back."),
    "resized": lambda: _("It is to end, and to go on with another number of replicas."),
}
"""Reason of an eviction -> what is asked of the job."""


ENDINGS: dict[str, Callable[[], str]] = {
    "submitted": lambda: _("It was submitted."),
    "placed": lambda: _("The scheduler found its place."),
    "started": lambda: _("It runs."),
    "exited": lambda: _("The command ended with an exit code that is not 0."),
    "signalled": lambda: _("A signal ended the command."),
    "memory_limit": lambda: _("It used more memory than it asked for and was stopped."),
    "time_limit": lambda: _("It reached its time limit and was stopped."),
    "cancelled": lambda: _("Somebody cancelled it."),
    "node_lost": lambda: _("Its node disappeared."),
    "start_failed": lambda: _("It could not be started."),
    "slow_start": lambda: _(
        "It has not begun yet though its executor took it: the disk of the data folder may be "
        "full, or the machine overloaded. It begins by itself as soon as it can."
    ),
    "supervisor_lost": lambda: _("What watched over it disappeared; how it ended is not known."),
    "record_lost": lambda: _("Its executor no longer knows it; how it ended is not known."),
    "drain": lambda: _("Its node is being emptied; it went back to the queue."),
    "preempted": lambda: _("It made room for a job of higher priority and is back in the queue."),
    "reclaimed": lambda: _("A tenant claimed its quota back; it is back in the queue."),
    "resized": lambda: _("It ended to go on with another number of replicas."),
    "promised": lambda: _("Running jobs are told to end, to make room for it."),
    "promise_ended": lambda: _(
        "What was freed for it can't be used after all; it waits as others do."
    ),
}
"""Reason word of an event or of an end -> a sentence."""


def eviction_sentence(reason: str) -> str:
    """Return why a running job is told to end for another; "" where the reason is none of these."""
    say = EVICTIONS.get(reason)
    return say() if say else ""


def end_sentence(reason: str) -> str:
    """Return how a job ended or why it went back to the queue; "" where nothing is to be said."""
    say = ENDINGS.get(reason)
    return say() if say else ""
