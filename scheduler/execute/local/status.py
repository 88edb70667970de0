"""What a supervisor says of its attempt, as it stands in status.json."""

import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scheduler.execute.base import Observation, Phase
from scheduler.execute.local.spec import STATUS
from scheduler.execute.records import CorruptRecordError, read_record

SIGNALLED = 128
"""Shells report a process that signal n ended as 128 + n."""


@dataclass(slots=True)
class Status:
    """Where an attempt stands.

    Attributes:
        phase: as observed.
        pid, boot_id: of the supervisor.
        started_s, finished_s: epoch seconds, for people: nothing is decided by them.
        exit_code, reason, message: as in Observation.
        exit_codes: replica index -> code, of those that have ended.
        cpu_frac, memory_mib: of all processes together.
        log_truncated, log_error: whether output was dropped, and why a write failed.
        cores: what the processes may run on.
        checkpointed_s: as in Observation.
    """

    phase: Phase
    pid: int
    boot_id: str
    started_s: float | None = None
    finished_s: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    exit_codes: dict[str, int] = field(default_factory=dict)
    cpu_frac: float | None = None
    memory_mib: int | None = None
    log_truncated: bool = False
    log_error: str = ""
    cores: list[int] = field(default_factory=list)
    checkpointed_s: float | None = None

    def to_record(self) -> dict[str, object]:
        """Return the status as JSON values."""
        return asdict(self)

    def observed(self, uid: str, attempt: int) -> Observation:
        """Return it in the executor's words."""
        return Observation(
            uid=uid,
            attempt=attempt,
            phase=self.phase,
            started_s=self.started_s,
            finished_s=self.finished_s,
            exit_code=self.exit_code,
            reason=self.reason,
            message=self.message,
            cpu_frac=self.cpu_frac,
            memory_mib=self.memory_mib,
            checkpointed_s=self.checkpointed_s,
        )


def read_status(folder: Path) -> Status | None:
    """Return the status in an attempt's folder, None before its supervisor wrote one.

    Raises:
        CorruptRecordError: it can't be understood.
    """
    record = read_record(folder / STATUS)
    if record is None:
        return None
    try:
        return _status_of(record)
    except (KeyError, TypeError, ValueError) as exc:
        raise CorruptRecordError(f"{STATUS} can't be understood") from exc


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why an attempt ends; the first one stands.

    Attributes:
        phase, reason, message, exit_code: as in Observation.
    """

    phase: Phase
    reason: str
    message: str
    exit_code: int | None = None


def verdict_of_exit(replica: int, code: int, *, of_many: bool) -> Verdict:
    """Return what a replica's exit code means; the code is 128 + n after signal n.

    Args:
        replica: its index.
        code: 0..255.
        of_many: the job has other replicas.
    """
    who = f"Replica {replica}" if of_many else "The command"
    if code == 0:
        return Verdict(Phase.SUCCEEDED, "", "", 0)
    name = _signal_name(code - SIGNALLED)
    if name:
        hint = ", as when memory runs out" if name == "SIGKILL" else ""
        return Verdict(Phase.FAILED, "signalled", f"{who} was ended by {name}{hint}.", code)
    hint = {126: ": the file can't be executed", 127: ": there is no such command"}.get(code, "")
    return Verdict(Phase.FAILED, "exited", f"{who} ended with exit code {code}{hint}.", code)


def exit_code_of(ended: os.waitid_result) -> int:
    """Return 0..255 for what waitid(2) gave, 128 + n after signal n."""
    if ended.si_code == os.CLD_EXITED:
        return ended.si_status
    return SIGNALLED + ended.si_status


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _status_of(record: Mapping[str, Any]) -> Status:
    fields = dict(record)
    fields["phase"] = Phase(fields["phase"])
    return Status(**fields)
