"""News of the fleet, and the small in-process way in which the lower apps tell the upper ones.

A lower app can't import an upper one, so the upper one subscribes. Listeners run when the
transaction commits, each on its own: one that fails is logged and takes nothing from the others.
News is a nudge: whoever misses one reads the same state in its next round.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db import transaction

News = TypeVar("News")


class Topic(Generic[News]):
    """One kind of news and who listens to it, in this process."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[News], object]] = []

    def subscribe(self, listener: Callable[[News], object], /) -> None:
        """Call `listener` with each news; subscribing again changes nothing."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def publish(self, news: News, /) -> None:
        """Tell every listener once the transaction commits; at once where none is open."""
        for listener in self._listeners:
            transaction.on_commit(_call(listener, news), robust=True)


def _call(listener: Callable[[News], object], news: News) -> Callable[[], None]:
    def tell() -> None:  # no partial: Django names a callback that fails by its __qualname__
        listener(news)

    return tell


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """A node or device of the cluster came, went, or may take more or less than before."""

    cluster_id: int
    cluster_slug: str


@dataclass(frozen=True, slots=True)
class ClusterSampled:
    """New readings of the cluster are in; no decision depends on them."""

    cluster_id: int
    cluster_slug: str


nodes_changed: Topic[NodesChanged] = Topic()
cluster_sampled: Topic[ClusterSampled] = Topic()
