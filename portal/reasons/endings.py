"""How jobs end, go back to the queue and make room for others, in words."""

from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _

EVICTIONS: dict[str, Callable[[], str]] = {
    "preempted": lambda: _("It is to end for a job of higher priority."),
    "reclaimed": lambda: _("It is to end, as a tenant claims its quota back."),
    "rebalanced": lambda: _("It is to end, as a tenant that borrows less needs the room."),
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
    "rebalanced": lambda: _(
        "It made room for a tenant that borrows less for its weight and is back in the queue."
    ),
    "resized": lambda: _("It ended to go on with another number of replicas."),
    "promised": lambda: _("Running jobs are told to end, to make room for it."),
    "promise_ended": lambda: _(
        "What was freed for it can't be used after all; it waits as others do."
    ),
}
"""Reason word of an event or of an end -> a sentence."""


NEWS: dict[str, Callable[[], str]] = {
    "eviction": lambda: _("told to end"),
    "promise": lambda: _("room is made"),
}
"""Kind of an event that moves no job -> what happened, in a word or two."""


def news_word(kind: str) -> str:
    """Return what an event is news of; "" where it is a move of the job."""
    say = NEWS.get(kind)
    return say() if say else ""


def eviction_sentence(reason: str) -> str:
    """Return why a running job is told to end for another; "" where the reason is none of these."""
    say = EVICTIONS.get(reason)
    return say() if say else ""


def end_sentence(reason: str) -> str:
    """Return how a job ended or why it went back to the queue; "" where nothing is to be said."""
    say = ENDINGS.get(reason)
    return say() if say else ""


def event_sentence(kind: str, reason: str, data: Mapping[str, object]) -> str:
    """Return why a job moved, or what is news of it, and what work that cost; "" = not known."""
    if kind == "eviction":
        return eviction_sentence(reason)
    said, lost = end_sentence(reason), _work_lost(data)
    return f"{said} {lost}" if said and lost else said


def _work_lost(data: Mapping[str, object]) -> str:
    """Return what has to be computed again, since the last checkpoint; "" where nobody counted."""
    devices, cores = data.get("lost_device_s"), data.get("lost_core_s")
    if isinstance(devices, int | float) and devices > 0:
        return _("Work lost: %(count)s device-seconds.") % {"count": f"{devices:,.0f}"}
    if isinstance(cores, int | float) and cores > 0:
        return _("Work lost: %(count)s core-seconds.") % {"count": f"{cores:,.0f}"}
    return "" if devices is None and cores is None else _("No work was lost.")
