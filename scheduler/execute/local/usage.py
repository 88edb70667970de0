"""What the processes of an attempt use."""

import math
import resource
from collections.abc import Iterable

from scheduler.execute.local.procfs import TICKS_PER_S, Process, pss_bytes, read_process

MIB = 1024 * 1024


class Meter:
    """Cores busy, smoothed over a few seconds, from all that an attempt has ever spent.

    What has been spent only grows: a process that ends leaves its time to the parent that takes
    note of it, in the end to the supervisor. So children too short to be seen are counted as well.
    """

    def __init__(self, *, now_s: float, ended_s: float = 0.0) -> None:
        """Start at monotonic time `now_s`, when the supervisor's own children had `ended_s`."""
        self._spent_s = ended_s
        self._at_s = now_s
        self.cpu_frac: float | None = None

    def update(self, processes: Iterable[Process], *, now_s: float, ended_s: float = 0.0) -> None:
        """Take what is spent at monotonic time `now_s`.

        Args:
            processes: below the supervisor.
            now_s: monotonic.
            ended_s: CPU time of the supervisor's children that have ended; see `ended_children_s`.
        """
        spent_s = ended_s + sum(each.cpu_ticks for each in processes) / TICKS_PER_S
        elapsed_s = now_s - self._at_s
        if elapsed_s > 0:
            busy = max(0.0, spent_s - self._spent_s) / elapsed_s
            weight = 1.0 if self.cpu_frac is None else 1 - math.exp(-elapsed_s / 2)
            self.cpu_frac = busy * weight + (self.cpu_frac or 0.0) * (1 - weight)
        self._spent_s, self._at_s = spent_s, now_s


def ended_children_s() -> float:
    """Return CPU time of this process's children that have ended, and of theirs, in seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def resident_mib(processes: Iterable[Process], *, limit_mib: float) -> int:
    """Return the memory of all of them, in MiB.

    Resident sizes count a page that workers share once for each. Only where their sum is above
    the limit does it pay to ask for the proportional sizes, which are slow and exact.
    """
    known = list(processes)
    total = sum(process.rss_bytes for process in known)
    if total > limit_mib * MIB:
        total = sum(_exact_bytes(process.pid) for process in known)
    return total // MIB


def _exact_bytes(pid: int) -> int:
    exact = pss_bytes(pid)
    if exact is not None:
        return exact
    # It may have ended since it was counted, and then holds nothing.
    again = read_process(pid)
    return again.rss_bytes if again else 0
