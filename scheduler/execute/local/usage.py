"""What the processes of an attempt use."""

import math
from collections.abc import Iterable

from scheduler.execute.local.procfs import TICKS_PER_S, Process, pss_bytes, read_process

MIB = 1024 * 1024


class Meter:
    """Cores busy, smoothed over a few seconds, from cumulative ticks of living processes."""

    def __init__(self, *, now_s: float) -> None:
        """Start at monotonic time `now_s`."""
        self._ticks: dict[tuple[int, int], int] = {}
        self._at_s = now_s
        self.cpu_frac: float | None = None

    def update(self, processes: Iterable[Process], *, now_s: float) -> None:
        """Take the processes as they are at monotonic time `now_s`."""
        ticks = {(each.pid, each.start_ticks): each.cpu_ticks for each in processes}
        spent = sum(max(0, value - self._ticks.get(key, 0)) for key, value in ticks.items())
        elapsed_s = now_s - self._at_s
        if elapsed_s > 0:
            busy = spent / TICKS_PER_S / elapsed_s
            weight = 1.0 if self.cpu_frac is None else 1 - math.exp(-elapsed_s / 2)
            self.cpu_frac = busy * weight + (self.cpu_frac or 0.0) * (1 - weight)
        self._ticks, self._at_s = ticks, now_s


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
