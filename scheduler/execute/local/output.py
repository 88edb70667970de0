"""The kept output of an attempt: one file, capped, that a full disk can't break.

One replica's output is kept byte for byte. Of several, each line starts with `[r3] `.
"""

import os
from pathlib import Path

from scheduler.execute.records import write_all


class Output:
    """Appends to one file until its cap; what comes after is dropped.

    Attributes:
        truncated: something was dropped.
        error: why the last write failed, "" where it did not.
    """

    def __init__(self, path: Path, *, cap_bytes: int, prefixed: bool) -> None:
        """Open `path` for appending, mode 600; a failure is kept in `error`."""
        self.truncated = False
        self.error = ""
        self._cap_bytes = cap_bytes
        self._prefixed = prefixed
        self._size = 0
        self._full = False
        self._tails: dict[int, bytes] = {}
        self._open_line = -1
        self._descriptor = self._open(path)

    def write(self, replica: int, data: bytes) -> None:
        """Keep `data`; of several replicas, only its whole lines for now."""
        if not self._prefixed:
            self._append(data)
            return
        whole, newline, tail = (self._tails.pop(replica, b"") + data).rpartition(b"\n")
        if newline:
            self._append_lines(replica, whole + newline)
        self._tails[replica] = tail
        if len(tail) > 65536:  # noqa: PLR2004 - an endless line is kept in pieces
            self.flush()

    def flush(self) -> None:
        """Keep the lines that have not ended yet too."""
        tails, self._tails = self._tails, {}
        for replica, tail in tails.items():
            if tail:
                self._append_lines(replica, tail)

    def close(self) -> None:
        """Flush, and close the file."""
        self.flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _append_lines(self, replica: int, data: bytes) -> None:
        mark = b"[r%d] " % replica
        body = data.removesuffix(b"\n").replace(b"\n", b"\n" + mark)
        start = b"" if self._open_line == replica else mark
        if self._open_line not in (-1, replica):
            start = b"\n" + mark
        end = b"\n" if data.endswith(b"\n") else b""
        self._open_line = -1 if end else replica
        self._append(start + body + end)

    def _append(self, data: bytes) -> None:
        if self._full:
            return
        room = self._cap_bytes - self._size
        if len(data) <= room:
            self._try_write(data)
            return
        self._full = self.truncated = True
        self._try_write(data[:room])
        self._try_write(b"\n[output beyond %d bytes was dropped]\n" % self._cap_bytes)

    def _try_write(self, data: bytes) -> None:
        if self._descriptor < 0:
            self.truncated = True
            return
        try:
            write_all(self._descriptor, data)
        except OSError as exc:
            # The job goes on: losing output is better than losing the run.
            self.error = exc.strerror or str(exc)
            self.truncated = True
        else:
            self._size += len(data)

    def _open(self, path: Path) -> int:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(path, flags, 0o600)
        except OSError as exc:
            self.error = exc.strerror or str(exc)
            return -1
