"""Work folders of jobs: where their processes start, and what they leave."""

import errno
import hashlib
import os
import stat
import subprocess
from pathlib import Path

from scheduler.execute.base import ExecutorRejectedError
from scheduler.execute.local.checkpoints import prepare_checkpoints
from scheduler.execute.local.exposure import is_open
from scheduler.execute.local.users import JobUser

SHARED_ROOT = Path("/var/tmp")  # noqa: S108 - checked below to be ours
REMOVE_S = 300.0


def work_root(folder: Path, user: JobUser | None) -> Path:
    """Return where work folders lie.

    Below the state folder, unless jobs have users of their own and can't pass through to it: a
    portal's data folder lets nobody else in, and has to stay so.
    """
    if user is None or is_open(folder):
        return folder / "work"
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return SHARED_ROOT / f"kilter-{os.geteuid()}-{name}"


def prepare_work(root: Path, job_uid: str, user: JobUser | None) -> Path:
    """Return the job's work folder, made where it is missing, and in it that of its checkpoints.

    `job_uid` is a checked UUID.

    Raises:
        ExecutorRejectedError: somebody else made the folder that we would use.
        OSError: it can't be made.
    """
    root.mkdir(mode=0o711, exist_ok=True)
    found = os.lstat(root)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ExecutorRejectedError(f"{root} belongs to somebody else")
    if user is not None:
        root.chmod(0o711)
    work = root / job_uid
    work.mkdir(mode=0o700, exist_ok=True)
    if user is not None and os.lstat(work).st_uid == os.geteuid():
        os.chown(work, user.uid, user.gid, follow_symlinks=False)
    if user is not None and os.lstat(work).st_uid != user.uid:
        raise ExecutorRejectedError("the job's work folder belongs to another user by now")
    prepare_checkpoints(work, user)
    return work


def remove_tree(folder: Path) -> None:
    """Remove a folder that a job filled, however deep it is and whatever modes it chose.

    By rm(1) and chmod(1): they follow no link on their way down, and know no limit of depth.

    Raises:
        OSError: something of it is left.
        subprocess.SubprocessError: it took too long.
    """
    for line in (["rm", "-rf", "--one-file-system"], ["chmod", "-R", "u+rwX"]) * 2:
        if not os.path.lexists(folder):
            return
        subprocess.run([*line, "--", folder], check=False, capture_output=True, timeout=REMOVE_S)
    if os.path.lexists(folder):
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))
