"""The contract of an executor: carries out placements, and says what really runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class ExecutorError(Exception):
    """Base of what an executor raises; `retryable` says whether trying again may help."""

    retryable = False


class ExecutorRejectedError(ExecutorError):
    """The placement can't be carried out as it is; trying again will not help."""


class ExecutorUnavailableError(ExecutorError):
    """The executor is not reachable now; what runs there is unknown."""

    retryable = True


@dataclass(frozen=True, slots=True)
class ReplicaBinding:
    """One replica of a job on one node.

    Attributes:
        index: 0-based number of the replica.
        node: name of the node.
        device_indices: indices of the devices on that node, as NVML or npu-smi counts them.
        device_uids: their ids.
        vendor: nvidia, amd, ascend, ... of those devices, "" for none.
        gpu_milli: thousandths of each device.
        gpu_memory_mib: device memory of each device.
    """

    index: int
    node: str
    device_indices: tuple[int, ...] = ()
    device_uids: tuple[str, ...] = ()
    vendor: str = ""
    gpu_milli: int = 0
    gpu_memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class Binding:
    """All that an executor needs to start one attempt of a job.

    Attributes:
        uid: the job; with `attempt` the key of idempotence.
        attempt: 1-based.
        name: for people only, never used in a path.
        command: shell command line, run by /bin/sh -c.
        image: container image, "" where the executor runs processes.
        env: the job's own variables.
        cpu_milli, memory_mib: limits of each replica.
        time_limit_s: walltime.
        grace_s: between SIGTERM and SIGKILL.
        replicas: where each replica goes.
        expected_duration_s: for the simulated executor: how long the whole work takes with these
            replicas; 0 = time limit.
        checkpoint_interval_s: how often the job says that it writes a checkpoint; 0 = never.
    """

    uid: str
    attempt: int
    name: str
    command: str
    image: str
    env: Mapping[str, str]
    cpu_milli: int
    memory_mib: int
    time_limit_s: float
    grace_s: float
    replicas: tuple[ReplicaBinding, ...]
    expected_duration_s: float = 0.0
    checkpoint_interval_s: float = 0.0


class Phase(StrEnum):
    """What an executor says of one attempt."""

    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


FINISHED = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED, Phase.TIMED_OUT, Phase.LOST})


@dataclass(frozen=True, slots=True)
class Observation:
    """What one attempt does, as the executor found it.

    Attributes:
        uid, attempt: which.
        phase: where it stands. LOST: it was here and left no trace of how it ended.
        started_s, finished_s: epoch seconds, None where not yet.
        exit_code: of the first replica that failed, else 0 once all have ended.
        reason: short machine word: "", exited, signalled, memory_limit, time_limit, cancelled,
            node_lost, start_failed, supervisor_lost.
        message: one plain sentence for people.
        cpu_frac: cores busy over the last few seconds, all replicas together; None = not known.
        memory_mib: resident memory of all replicas; None = not known.
        checkpointed_s: when it wrote its newest checkpoint, epoch seconds; None = none was seen.
        node: "" where it does not matter.
    """

    uid: str
    attempt: int
    phase: Phase
    started_s: float | None = None
    finished_s: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    cpu_frac: float | None = None
    memory_mib: int | None = None
    checkpointed_s: float | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of a job's output.

    Attributes:
        data: raw bytes as the job wrote them.
        since: offset of the first byte of `data`.
        size: bytes kept in all.
        truncated: output beyond the cap was dropped.
    """

    data: bytes
    since: int
    size: int
    truncated: bool = False


class Executor(Protocol):
    """Carries out placements. Idempotent: the same (job uid, attempt) twice has one effect."""

    def bind(self, binding: Binding, /) -> None:
        """Start the attempt, or do nothing where it was started before.

        Raises:
            ExecutorRejectedError: it can't be started as asked.
            ExecutorUnavailableError: try again later.
        """
        ...

    def evict(self, uid: str, attempt: int, /, *, grace_s: float, reason: str) -> None:
        """Ask the attempt to end: SIGTERM, grace, SIGKILL. Returns at once; unknown is no error."""
        ...

    def observe(self, /, *, now_s: float) -> Sequence[Observation]:
        """Return every attempt that the executor knows of.

        Raises:
            ExecutorUnavailableError: what runs is unknown, and nothing may be concluded.
        """
        ...

    def forget(self, uid: str, attempt: int, /) -> None:
        """Drop the record of an attempt whose end was stored; its log stays."""
        ...

    def log(self, uid: str, attempt: int, /, *, since: int, limit: int) -> LogChunk:
        """Return output from byte `since` on, at most `limit` bytes; empty where there is none."""
        ...

    def kept(self) -> Sequence[tuple[str, int]]:
        """Return job and attempt of all that was forgotten and of which something is kept."""
        ...

    def purge(self, uid: str, attempts: Sequence[int], /) -> None:
        """Remove the output of forgotten attempts, and the work of the job, which is over for good.

        Unknown is no error; what has not been forgotten stays.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """What every executor is built from."""

    cluster: str
    options: Mapping[str, object] = field(default_factory=dict)


EXECUTORS: dict[str, str] = {
    "local": "scheduler.execute.local.build",
    "simulated": "scheduler.execute.simulated.build",
}
"""Kind of cluster -> import path of `build(settings: ExecutorSettings) -> Executor`."""
