"""The jobs that wait, in order of submit time and uid, whenever they came back."""

import bisect
from dataclasses import replace

from scheduler.core.snapshot import JobSpec


class Waiting:
    """A sorted list that is cheap to freeze; adding and taking cost a search and a shift."""

    def __init__(self) -> None:
        self._keys: list[tuple[float, str]] = []
        self._specs: list[JobSpec] = []
        self._frozen: tuple[JobSpec, ...] | None = ()
        self._promised: set[tuple[float, str]] = set()

    def __len__(self) -> int:
        return len(self._specs)

    def add(self, spec: JobSpec) -> None:
        """Let a job wait."""
        key = (spec.submitted_s, spec.uid)
        at = bisect.bisect_left(self._keys, key)
        self._keys.insert(at, key)
        self._specs.insert(at, spec)
        self._frozen = None
        if spec.promised_s:
            self._promised.add(key)

    def take(self, submitted_s: float, uid: str) -> JobSpec:
        """Take a job out of the queue and return it; KeyError if it does not wait."""
        at = self._find(submitted_s, uid)
        self._promised.discard(self._keys[at])
        del self._keys[at]
        self._frozen = None
        return self._specs.pop(at)

    def promise(self, submitted_s: float, uid: str, *, now_s: float) -> None:
        """Note since when room is being made for a job; KeyError if it does not wait."""
        at = self._find(submitted_s, uid)
        if not self._specs[at].promised_s:
            self._promised.add((submitted_s, uid))
            self._set(at, replace(self._specs[at], promised_s=now_s))

    def size(self, submitted_s: float, uid: str, most: int) -> None:
        """Let a job have so many replicas at most; KeyError if it does not wait."""
        at = self._find(submitted_s, uid)
        self._set(at, replace(self._specs[at], replicas_max=most))

    def promised(self) -> list[tuple[float, str]]:
        """Return (submit time, uid) of the jobs that room is being made for, in order."""
        return sorted(self._promised)

    def take_back(self, submitted_s: float, uid: str, *, now_s: float) -> None:
        """Let a job wait as all others do, whose promise came to nothing by now."""
        self._promised.discard((submitted_s, uid))
        at = self._find(submitted_s, uid)
        self._set(at, replace(self._specs[at], promised_s=0.0, not_before_s=now_s))

    def _set(self, at: int, spec: JobSpec) -> None:
        self._specs[at] = spec
        self._frozen = None

    def _find(self, submitted_s: float, uid: str) -> int:
        key = (submitted_s, uid)
        at = bisect.bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            raise KeyError(uid)
        return at

    def freeze(self) -> tuple[JobSpec, ...]:
        """Return the jobs in order."""
        if self._frozen is None:
            self._frozen = tuple(self._specs)
        return self._frozen
