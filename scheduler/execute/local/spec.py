"""What a supervisor must know of its attempt, as it stands in spec.json, and where things lie."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scheduler.execute.base import Binding, ExecutorRejectedError, ReplicaBinding
from scheduler.execute.local.users import JobUser
from scheduler.execute.records import CorruptRecordError, read_record

ARGUMENT_MAX_BYTES = 128 * 1024 - 1
"""Of one argument or variable: MAX_ARG_STRLEN of Linux, with its closing NUL."""
ENVIRONMENT_MAX_BYTES = 1024 * 1024
COMMAND_MAX_BYTES = 64 * 1024 * 1024
INLINE_COMMAND_MAX_BYTES = 64 * 1024

STATUS = "status.json"
SPEC = "spec.json"
EVICT = "evict.json"
LOCK = "lock"
OUTPUT = "output.log"


@dataclass(frozen=True, slots=True)
class Spec:
    """One attempt, complete.

    Attributes:
        binding: what was asked for.
        work: the job's work folder, which its attempts and replicas share.
        user: who runs it, None = the supervisor's own user.
        log_cap_bytes: of the kept output.
        path: PATH of the job.
        shown: folders that every job must be able to read.
        hidden: folders that a job of our own user must not see; see `hiding`.
    """

    binding: Binding
    work: Path
    user: JobUser | None
    log_cap_bytes: int
    path: str
    shown: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    def to_record(self) -> dict[str, object]:
        """Return the spec as JSON values."""
        return {
            "binding": asdict(self.binding),
            "work": str(self.work),
            "user": asdict(self.user) if self.user else None,
            "log_cap_bytes": self.log_cap_bytes,
            "path": self.path,
            "shown": [str(folder) for folder in self.shown],
            "hidden": [str(folder) for folder in self.hidden],
        }


def read_spec(folder: Path) -> Spec:
    """Return the spec of an attempt's folder.

    Raises:
        CorruptRecordError: it is missing or can't be understood.
    """
    record = read_record(folder / SPEC)
    if record is None:
        raise CorruptRecordError(f"{SPEC} is missing")
    try:
        return _spec_of(record)
    except (KeyError, TypeError, ValueError) as exc:
        raise CorruptRecordError(f"{SPEC} can't be understood") from exc


def check_binding(binding: Binding) -> None:
    """Refuse what can't be run here.

    Raises:
        ExecutorRejectedError: says what is wrong.
    """
    if binding.image:
        raise ExecutorRejectedError("this machine runs processes, not images")
    if not binding.replicas:
        raise ExecutorRejectedError("the binding has no replica")
    if len({replica.index for replica in binding.replicas}) != len(binding.replicas):
        raise ExecutorRejectedError("two replicas have the same index")
    _check_command(binding.command)
    _check_environment(binding.env)
    for name in ("time_limit_s", "grace_s", "cpu_milli", "memory_mib"):
        value = getattr(binding, name)
        if not (math.isfinite(value) and value >= 0):
            raise ExecutorRejectedError(f"{name} is not a number from 0 on")
    if binding.time_limit_s <= 0 or binding.memory_mib <= 0:
        raise ExecutorRejectedError("time_limit_s and memory_mib must be above 0")


def _check_command(command: str) -> None:
    if "\0" in command:
        raise ExecutorRejectedError("the command holds a NUL character")
    if not command.strip():
        raise ExecutorRejectedError("the command is empty")
    if len(_encoded(command, "the command")) > COMMAND_MAX_BYTES:
        raise ExecutorRejectedError(f"the command is longer than {COMMAND_MAX_BYTES} bytes")


def _check_environment(env: Mapping[str, str]) -> None:
    total = 0
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ExecutorRejectedError(f"{name!r} can't be an environment variable")
        size = len(_encoded(f"{name}={value}", f"the variable {name!r}"))
        if size > ARGUMENT_MAX_BYTES:
            raise ExecutorRejectedError(f"the variable {name!r} is longer than 128 KiB")
        total += size
    if total > ENVIRONMENT_MAX_BYTES:
        raise ExecutorRejectedError("the variables together are longer than 1 MiB")


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise ExecutorRejectedError(f"{what} holds half a surrogate pair") from exc


def _spec_of(record: Mapping[str, Any]) -> Spec:
    fields = dict(record["binding"])
    replicas = tuple(_replica_of(value) for value in fields.pop("replicas"))
    user = record["user"]
    return Spec(
        binding=Binding(**fields, replicas=replicas),
        work=Path(record["work"]),
        user=JobUser(**user) if user else None,
        log_cap_bytes=int(record["log_cap_bytes"]),
        path=str(record["path"]),
        shown=tuple(Path(folder) for folder in record["shown"]),
        hidden=tuple(Path(folder) for folder in record.get("hidden", ())),
    )


def _replica_of(value: Mapping[str, Any]) -> ReplicaBinding:
    fields = dict(value)
    fields["device_indices"] = tuple(fields["device_indices"])
    fields["device_uids"] = tuple(fields["device_uids"])
    return ReplicaBinding(**fields)
