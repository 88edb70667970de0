"""Spreads attempts over the cores of this machine."""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from scheduler.execute.base import FINISHED
from scheduler.execute.local.procfs import Process
from scheduler.execute.local.status import read_status
from scheduler.execute.records import CorruptRecordError


def choose_cores(active: Path, count: int) -> list[int]:
    """Return `count` cores that the fewest attempts use, all of them where there are no more.

    Two attempts that start at the same moment may choose the same ones: that costs speed only.
    """
    mine = sorted(os.sched_getaffinity(0))
    uses = Counter(dict.fromkeys(mine, 0))
    for folder in active.iterdir():
        with suppress(CorruptRecordError, OSError):
            status = read_status(folder)
            if status is not None and status.phase not in FINISHED:
                uses.update(status.cores)
    ordered = sorted(mine, key=lambda core: (uses[core], core))
    return sorted(ordered[: max(1, count)])


def keep_to_cores(processes: Iterable[Process], cores: Iterable[int]) -> None:
    """Bring back threads that took cores they were not given, which any process may try.

    A thread that keeps to some of its cores, as numerical libraries do, is left alone.
    """
    given = set(cores)
    for process in processes:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{process.pid}/task"):  # noqa: PTH208 - often
                if given and not os.sched_getaffinity(int(name)) <= given:
                    os.sched_setaffinity(int(name), given)
