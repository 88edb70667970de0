"""Who of a tenant waits behind a higher class of it that may use one of the same flavors.

Only the first job of each group (`ordering.Group`) counts. Each question costs a look at one heap
per flavor, and each group is looked at again only when the class ahead of it on one flavor is gone:
O(flavors x log groups) a job, however many sets of flavors a tenant's jobs name.
"""

import heapq
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from scheduler.core.snapshot import JobSpec

Lane: TypeAlias = tuple[str, str]
"""(tenant, flavor); "" stands for jobs without devices, which only meet each other."""


class _Waiting(NamedTuple):
    """The first job of a group, highest class first."""

    negative_class: int
    group: int
    uid: str


class Seniority:
    """The first jobs of all groups."""

    def __init__(self) -> None:
        self._first: dict[int, tuple[JobSpec, tuple[Lane, ...]]] = {}
        self._waiting: dict[Lane, list[_Waiting]] = {}
        self._held_back: dict[Lane, list[_Waiting]] = {}
        self._is_held_back: set[tuple[int, str]] = set()

    def note(self, group: int, job: JobSpec, flavors: tuple[str, ...]) -> None:
        """Note which job is first in a group now."""
        self._first[group] = job, _lanes(job, flavors)
        for lane in self._first[group][1]:
            heapq.heappush(self._waiting.setdefault(lane, []), _entry(group, job))

    def is_behind(self, job: JobSpec, flavors: tuple[str, ...]) -> bool:
        """Return whether a higher class of the job's tenant waits for one of the same flavors."""
        return self._behind_on(job, _lanes(job, flavors)) is not None

    def holds_back(self, group: int) -> bool:
        """Return whether the first of a group is behind a higher class; if so it is told later."""
        job, lanes = self._first[group]
        if (group, job.uid) in self._is_held_back:
            return True
        lane = self._behind_on(job, lanes)
        if lane is not None:
            self._is_held_back.add((group, job.uid))
            heapq.heappush(self._held_back.setdefault(lane, []), _entry(group, job))
        return lane is not None

    def had_turn(self, group: int) -> None:
        """Forget the first of a group; the next one is to be noted before anything is asked."""
        job, _ = self._first.pop(group)
        self._is_held_back.discard((group, job.uid))

    def freed(self, job: JobSpec, flavors: tuple[str, ...]) -> Iterator[int]:
        """Give the groups that only a job held back that has had its turn."""
        for lane in _lanes(job, flavors):
            held_back, top = self._held_back.get(lane, []), self._top(lane)
            while held_back and (top is None or -held_back[0].negative_class >= top):
                one = heapq.heappop(held_back)
                if self._is_first(one):
                    self._is_held_back.discard((one.group, one.uid))
                    if not self.holds_back(one.group):
                        yield one.group

    def _behind_on(self, job: JobSpec, lanes: tuple[Lane, ...]) -> Lane | None:
        for lane in lanes:
            top = self._top(lane)
            if top is not None and top > job.priority:
                return lane
        return None

    def _top(self, lane: Lane) -> int | None:
        """Return the highest class that waits there, None where nobody does."""
        waiting = self._waiting.get(lane, [])
        while waiting and not self._is_first(waiting[0]):
            heapq.heappop(waiting)
        return -waiting[0].negative_class if waiting else None

    def _is_first(self, one: _Waiting) -> bool:
        known = self._first.get(one.group)
        return known is not None and known[0].uid == one.uid


def _entry(group: int, job: JobSpec) -> _Waiting:
    return _Waiting(-job.priority, group, job.uid)


def _lanes(job: JobSpec, flavors: tuple[str, ...]) -> tuple[Lane, ...]:
    return tuple((job.tenant, flavor) for flavor in flavors or ("",))
