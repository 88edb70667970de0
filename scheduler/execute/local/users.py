"""Who runs a job: where we are root, a user of its own for each job, so that jobs are strangers."""

import glob
import hashlib
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from scheduler.execute.base import ExecutorRejectedError

PRIVATE_FIRST = 0x40000000
PRIVATE_COUNT = 0x10000000
"""Far above the ids of people and services, and beyond what subuid(5) gives out by default."""

DEVICE_NODES = {
    "amd": ("/dev/kfd", "/dev/dri/renderD*"),
    "ascend": ("/dev/davinci*", "/dev/devmm_svm", "/dev/hisi_hdc"),
    "nvidia": ("/dev/nvidia*",),
}
"""Drivers often let only a group such as render, or HwHiAiUser, use them."""


@dataclass(frozen=True, slots=True)
class JobUser:
    """The user that a job's processes run as.

    Attributes:
        uid, gid: numbers; the user needs no entry in /etc/passwd.
        private: no other job runs as this user, so every process of it is the job's.
    """

    uid: int
    gid: int
    private: bool


def job_user(job_uid: str, run_as: str | None) -> JobUser | None:
    """Return the user for a job, None to stay who we are.

    Raises:
        ExecutorRejectedError: there is no such user, or we may not become it.
    """
    if run_as is not None:
        return _named(run_as)
    if os.geteuid() != 0:
        return None
    digest = hashlib.sha256(job_uid.encode()).digest()
    number = PRIVATE_FIRST + int.from_bytes(digest[:4], "big") % PRIVATE_COUNT
    if _is_mapped(number):
        return JobUser(number, number, private=True)
    return _named("nobody")


def device_groups(vendor: str) -> list[int]:
    """Return the groups that may use the devices of a vendor, where not everybody may."""
    groups = set()
    for pattern in DEVICE_NODES.get(vendor, ()):
        for node in glob.glob(pattern):  # noqa: PTH207 - patterns are absolute
            found = Path(node).stat()
            if found.st_gid != 0 and found.st_mode & 0o066 == 0o060:  # noqa: PLR2004
                groups.add(found.st_gid)
    return sorted(groups)


def _named(name: str) -> JobUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError as exc:
        raise ExecutorRejectedError(f"there is no user {name!r} on this machine") from exc
    if entry.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ExecutorRejectedError(f"only root can run jobs as {name!r}")
    return JobUser(entry.pw_uid, entry.pw_gid, private=False)


def _is_mapped(number: int) -> bool:
    """In a container with a user namespace only the ids of its map exist (user_namespaces(7))."""
    for line in Path("/proc/self/uid_map").read_text("ascii").splitlines():
        first, _, count = map(int, line.split())
        if first <= number < first + count:
            return True
    return False
