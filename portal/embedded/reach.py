"""Let the servers' OS user walk to its folders, and let it do nothing else there.

Where the portal runs as root, PostgreSQL runs as another user, and a clone under /root lies
behind folders of mode 700. That one user gets *search* on them by an access list (acl(5)); it
cannot list them, and nobody else gains anything. Without access lists everybody gets search.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from portal.embedded.processes import Account

ACL = "system.posix_acl_access"
# linux/posix_acl_xattr.h: version 2, then entries of tag, permissions and id.
VERSION, NO_ID = 2, 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
SEARCH = 0x1
Entry = tuple[int, int, int]


def open_way(target: Path, account: Account) -> list[Path]:
    """Give `account` search on every folder above `target` that it lacks; return those changed."""
    if account.is_ours:
        return []
    shut = [folder for folder in reversed(target.parents) if not _may_search(folder, account)]
    for folder in shut:
        _grant(folder, account)
    return shut


def _may_search(folder: Path, account: Account) -> bool:
    found = folder.stat()
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    rights = {(tag, who): granted for tag, granted, who in _entries(folder)}
    named = rights.get((USER, account.uid))
    if named is not None:  # chmod narrows the mask, and with it what is named
        return bool(named & rights.get((MASK, NO_ID), SEARCH) & SEARCH)
    shift = 3 if found.st_gid == account.gid else 0
    return bool(found.st_mode >> shift & SEARCH)


def _entries(folder: Path) -> Iterator[Entry]:
    try:
        raw = os.getxattr(folder, ACL)
    except OSError as wrong:
        if wrong.errno in {errno.ENODATA, errno.ENOTSUP}:
            return
        raise
    yield from struct.iter_unpack("<HHI", raw[4:])


def _grant(folder: Path, account: Account) -> None:
    mode = folder.stat().st_mode
    entries = list(_entries(folder)) or [
        (USER_OBJ, mode >> 6 & 7, NO_ID),
        (GROUP_OBJ, mode >> 3 & 7, NO_ID),
        (OTHER, mode & 7, NO_ID),
    ]
    kept = [entry for entry in entries if (entry[0], entry[2]) != (USER, account.uid)]
    others = [entry for entry in kept if entry[0] != MASK]
    mask = SEARCH
    for tag, rights, _who in others:
        mask |= rights if tag in {USER, GROUP, GROUP_OBJ} else 0
    full = sorted([*others, (USER, SEARCH, account.uid), (MASK, mask, NO_ID)], key=_order)
    raw = struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in full)
    try:
        os.setxattr(folder, ACL, raw)
    except OSError as wrong:
        if wrong.errno != errno.ENOTSUP:
            raise
        folder.chmod(mode | stat.S_IXOTH)


def _order(entry: Entry) -> tuple[int, int]:
    return entry[0], entry[2]
