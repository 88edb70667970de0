"""A job's checkpoint folder, and when something whole was last written there.

The folder lies in the job's work folder, so that all attempts share it, nobody else sees it, and it
goes with the job. What the job puts there is looked at by a supervisor that may be root: no link is
followed, nothing but folders is opened, and a look ends after so many names.
"""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

from scheduler.execute.local.users import JobUser

FOLDER = "checkpoints"
NAMES_MOST = 4096
DEPTH_MOST = 3
"""Frameworks write a folder for each step, with one for each rank in it."""


def prepare_checkpoints(work: Path, user: JobUser | None) -> None:
    """Make the folder for checkpoints in a job's own work folder, where it is missing.

    Whatever else the job has put in its place stays, and is never looked into.

    Raises:
        OSError: it can't be made.
    """
    with _opened(work) as parent:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, mode=0o700, dir_fd=parent)
        with suppress(NotADirectoryError), _opened(FOLDER, parent) as folder:
            if user is not None and os.fstat(folder).st_uid == os.geteuid():
                os.fchown(folder, user.uid, user.gid)


def newest_checkpoint_s(work: Path) -> float | None:
    """Return when the newest file below the checkpoint folder was last written, epoch seconds.

    A name that begins with a dot does not count: a job that writes such a file and then renames it
    is never seen with half a checkpoint.

    Returns:
        None where there is no file yet, or the folder can't be read.
    """
    with suppress(OSError), _opened(work) as parent, closing(_found(parent, FOLDER, 0)) as found:
        looked_at = islice(found, NAMES_MOST)
        return max((one.st_mtime for one in looked_at if stat.S_ISREG(one.st_mode)), default=None)
    return None


def _found(parent: int, name: str, depth: int) -> Generator[os.stat_result]:
    """Yield what is known of all that lies in a folder and, so deep, in those below it."""
    # A folder that is gone meanwhile, or closed, is one without checkpoints.
    with suppress(OSError), _opened(name, parent) as folder, os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            one = entry.stat(follow_symlinks=False)
            yield one
            if stat.S_ISDIR(one.st_mode) and depth < DEPTH_MOST:
                yield from _found(folder, entry.name, depth + 1)


@contextmanager
def _opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """Open a folder that is no link.

    Raises:
        OSError: it is not there, or something else is.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
