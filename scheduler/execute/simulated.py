"""The simulated executor: attempts that only play their part on a clock. Nothing is run.

    FOLDER/active/KEY.json    one attempt: what was asked, and when it was first seen
    FOLDER/ended/KEY.json     the same, once forgotten
    FOLDER/clock.json         the last moment that was observed, real and simulated

What an attempt does is a function of its record and of simulated time, so that it survives
restarts and is the same for every process. Only observe() moves time.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.execute.base import (
    Binding,
    Executor,
    ExecutorRejectedError,
    ExecutorSettings,
    ExecutorUnavailableError,
    LogChunk,
    Observation,
    Phase,
)
from scheduler.execute.records import (
    CorruptRecordError,
    key_of,
    parse_key,
    read_record,
    write_record,
)

FAILURES_PER_MILLE = 30
END_AFTER_EVICT_S = 2.0
LOG_LINES = 100
ASKED = frozenset({"cpu_milli", "memory_mib", "replicas", "duration_s", "time_limit_s"})
FIELDS = ASKED | {"bound_s", "started_s", "finished_s", "evict"}
RESUMED: Mapping[str, object] = {"checkpoint_every_s": 0.0, "done_s": 0.0, "checkpoint": None}
"""Fields that records of earlier releases lack, and what that means."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant on both clocks, in seconds: `real_s` of the caller, `sim_s` simulated."""

    real_s: float
    sim_s: float


@dataclass(frozen=True, slots=True)
class Part:
    """What an attempt plays, in simulated seconds.

    Attributes:
        start_s: when it starts to run.
        end_s: when it ends.
        phase, exit_code, reason, message: how it ends, as in Observation.
    """

    start_s: float
    end_s: float
    phase: Phase
    exit_code: int | None
    reason: str
    message: str


def build(settings: ExecutorSettings) -> Executor:
    """Return the simulated executor.

    Args:
        settings: options are `folder` (where state is kept; needed) and `clock` (a function from
            real to simulated epoch seconds, never falling; by default they are the same).

    Raises:
        ExecutorRejectedError: an option is wrong.
    """
    folder = settings.options.get("folder")
    clock = settings.options.get("clock", _same)
    if not isinstance(folder, str | Path):
        raise ExecutorRejectedError("the simulated executor needs the option 'folder'")
    if not callable(clock):
        raise ExecutorRejectedError("the option 'clock' must be a function")
    executor = SimulatedExecutor(Path(folder).absolute(), clock)
    for part in ("active", "ended"):
        (executor.folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    return executor


@dataclass(frozen=True, slots=True)
class SimulatedExecutor:
    """Plays attempts.

    Attributes:
        folder: where state is kept.
        clock: real -> simulated epoch seconds.
    """

    folder: Path
    clock: Callable[[float], float]

    def bind(self, binding: Binding, /) -> None:
        """Note the attempt; it begins at the next observe(); see Executor."""
        key = key_of(binding.uid, binding.attempt)
        if not binding.replicas:
            raise ExecutorRejectedError("the binding has no replica")
        whole_s = binding.expected_duration_s or binding.time_limit_s
        record = {
            "cpu_milli": binding.cpu_milli,
            "memory_mib": binding.memory_mib,
            "replicas": len(binding.replicas),
            "duration_s": whole_s,
            "time_limit_s": binding.time_limit_s,
            "checkpoint_every_s": binding.checkpoint_interval_s,
            "done_s": 0.0,
            "checkpoint": None,
            "bound_s": None,
            "started_s": None,
            "finished_s": None,
            "evict": None,
        }
        with self._alone():
            if not self._path("active", key).exists() and not self._path("ended", key).exists():
                record["done_s"] = whole_s * self._saved_frac(binding.uid, binding.attempt)
                write_record(self._path("active", key), record, durable=False)

    def evict(self, uid: str, attempt: int, /, *, grace_s: float, reason: str) -> None:
        """Note the wish; it counts from the next observe() on; see Executor."""
        path = self._path("active", key_of(uid, attempt))
        with self._alone():
            record = _read(path)
            if record is not None and record["evict"] is None:
                record["evict"] = {"grace_s": grace_s, "reason": reason, "asked_s": None}
                write_record(path, record, durable=False)

    def observe(self, /, *, now_s: float) -> Sequence[Observation]:
        """Move time on, and return what every attempt does at it; see Executor."""
        with self._alone():
            before = self._last()
            now = self._now(before, now_s)
            found = [
                self._observe_one(path, before or now, now)
                for path in sorted((self.folder / "active").glob("*.json"))
            ]
            clock = {"real_s": now.real_s, "sim_s": now.sim_s}
            write_record(self.folder / "clock.json", clock, durable=False)
        return [each for each in found if each is not None]

    def forget(self, uid: str, attempt: int, /) -> None:
        """Move the attempt out of sight; its log stays; see Executor."""
        key = key_of(uid, attempt)
        with self._alone():
            path = self._path("active", key)
            if path.exists():
                path.rename(self._path("ended", key))

    def log(self, uid: str, attempt: int, /, *, since: int, limit: int) -> LogChunk:
        """Return a piece of the output that a real attempt might have had; see Executor."""
        key = key_of(uid, attempt)
        with self._alone():
            record = self._record(key)
            last = self._last()
        if record is None or last is None or record["bound_s"] is None:
            return LogChunk(b"", 0, 0)
        pace_s = max(1.0, _left_s(record) / LOG_LINES)
        whole = render_log(part_of(key, record), last.sim_s, pace_s=pace_s)
        start = min(max(0, since), len(whole))
        return LogChunk(whole[start : start + max(0, limit)], start, len(whole))

    def kept(self) -> Sequence[tuple[str, int]]:
        """Return all forgotten attempts; see Executor."""
        names = sorted(path.stem for path in (self.folder / "ended").glob("*.json"))
        return [key for key in map(parse_key, names) if key is not None]

    def purge(self, uid: str, attempts: Sequence[int], /) -> None:
        """Remove what is known of forgotten attempts; see Executor."""
        for attempt in attempts:
            self._path("ended", key_of(uid, attempt)).unlink(missing_ok=True)

    def _observe_one(self, path: Path, before: Moment, now: Moment) -> Observation | None:
        key = path.name.removesuffix(".json")
        parsed = parse_key(key)
        if parsed is None:
            return None
        try:
            record = _read(path)
        except CorruptRecordError:
            message = "Simulated: the record of this attempt is damaged."
            return Observation(*parsed, Phase.LOST, reason="supervisor_lost", message=message)
        if record is None:
            return None
        asked = _stamp_asked(record, now.sim_s)
        part = part_of(key, record)
        saved = _stamp_checkpoint(record, part, before, now)
        if _stamp_times(record, part, before, now) or saved or asked:
            write_record(path, record, durable=False)
        return _observation(*parsed, part, record)

    def _now(self, before: Moment | None, now_s: float) -> Moment:
        """Count on from the last moment: no step back, and no jump when the scale changes."""
        if before is None:
            return Moment(now_s, self.clock(now_s))
        passed_s = self.clock(now_s) - self.clock(before.real_s)
        return Moment(now_s, before.sim_s + max(0.0, passed_s))

    def _last(self) -> Moment | None:
        with suppress(CorruptRecordError):
            record = read_record(self.folder / "clock.json")
            if record is not None and record.keys() >= {"real_s", "sim_s"}:
                return Moment(record["real_s"], record["sim_s"])
        return None

    def _saved_frac(self, uid: str, attempt: int) -> float:
        """Return which part of a job's work earlier attempts have saved, in 0..1.

        Not how many seconds: with other replicas the same work takes another time.
        """
        for earlier in range(attempt - 1, 0, -1):
            with suppress(CorruptRecordError):
                record = self._record(key_of(uid, earlier))
                if record is not None:
                    newest = record["checkpoint"] or {"saved_s": 0.0}
                    saved_s, whole_s = record["done_s"] + newest["saved_s"], record["duration_s"]
                    return min(1.0, float(saved_s / whole_s)) if whole_s > 0 else 0.0
        return 0.0

    def _record(self, key: str) -> dict[str, Any] | None:
        return _read(self._path("active", key)) or _read(self._path("ended", key))

    def _path(self, part: str, key: str) -> Path:
        return self.folder / part / f"{key}.json"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time read and write, and turn the system's errors into ours."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.folder / "lock", flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)
        except (OSError, CorruptRecordError) as exc:
            raise ExecutorUnavailableError(f"the state of simulated jobs: {exc}") from exc


def part_of(key: str, record: Mapping[str, Any]) -> Part:
    """Return what the attempt plays, as known by now.

    It goes on after what earlier attempts have saved. A few in a thousand fail part of the way;
    which ones depends on the key alone.

    Args:
        key: uid.attempt.
        record: as bind() wrote it, `bound_s` set.
    """
    chance = _fractions(key)
    start_s = record["bound_s"] + 1.0 + 2.0 * chance[0]
    left_s = _left_s(record)
    part = Part(start_s, start_s + left_s, Phase.SUCCEEDED, 0, "", "")
    if chance[1] * 1000 < FAILURES_PER_MILLE:
        end_s = start_s + left_s * chance[2]
        part = Part(start_s, end_s, Phase.FAILED, 1, "exited", "Simulated: the job failed.")
    if part.end_s > start_s + record["time_limit_s"]:
        end_s = start_s + record["time_limit_s"]
        message = "Simulated: the job reached its time limit."
        part = Part(start_s, end_s, Phase.TIMED_OUT, 143, "time_limit", message)
    evict = record["evict"]
    if evict is not None and evict["asked_s"] is not None and evict["asked_s"] < part.end_s:
        end_s = evict["asked_s"] + min(END_AFTER_EVICT_S, max(0.0, evict["grace_s"]))
        message = f"Simulated: the job was ended on request ({evict['reason']})."
        part = Part(start_s, end_s, Phase.CANCELLED, 143, "cancelled", message)
    return part


def render_log(part: Part, sim_s: float, *, pace_s: float) -> bytes:
    """Return all output up to simulated time `sim_s`; what was once returned stays as it was.

    Args:
        part: what the attempt plays.
        sim_s: simulated time.
        pace_s: seconds from line to line.
    """
    if sim_s < part.start_s:
        return b""
    lines = ["simulated: nothing is run; this job only plays its part on a clock"]
    elapsed_s = min(sim_s, part.end_s) - part.start_s
    steps = min(LOG_LINES, int(elapsed_s / pace_s))
    lines += [f"simulated: step {step}, {step * pace_s:.0f} s" for step in range(1, steps + 1)]
    if sim_s >= part.end_s:
        lines.append(f"simulated: {part.phase.value} after {elapsed_s:.0f} s")
    return "".join(f"{line}\n" for line in lines).encode()


def _stamp_asked(record: dict[str, Any], sim_s: float) -> bool:
    """Note when bind() and evict() were first seen; return whether something was noted."""
    changed = record["bound_s"] is None
    if changed:
        record["bound_s"] = sim_s
    evict = record["evict"]
    if evict is not None and evict["asked_s"] is None:
        evict["asked_s"] = sim_s
        changed = True
    return changed


def _stamp_times(record: dict[str, Any], part: Part, before: Moment, now: Moment) -> bool:
    """Note start and end on the real clock; return whether something was noted."""
    changed = False
    for name, at_s in (("started_s", part.start_s), ("finished_s", part.end_s)):
        never = name == "started_s" and part.end_s < part.start_s
        if record[name] is None and at_s <= now.sim_s and not never:
            record[name] = _real_time(at_s, before, now)
            changed = True
    return changed


def _stamp_checkpoint(record: dict[str, Any], part: Part, before: Moment, now: Moment) -> bool:
    """Note the newest checkpoint on both clocks; return whether there is a new one."""
    every_s = record["checkpoint_every_s"]
    ran_s = min(now.sim_s, part.end_s) - part.start_s
    if every_s <= 0 or ran_s < every_s:
        return False
    saved_s = ran_s // every_s * every_s
    if record["checkpoint"] is not None and record["checkpoint"]["saved_s"] >= saved_s:
        return False
    at_s = _real_time(part.start_s + saved_s, before, now)
    record["checkpoint"] = {"saved_s": saved_s, "real_s": at_s}
    return True


def _left_s(record: Mapping[str, Any]) -> float:
    """Return how long the attempt takes if nothing stops it, in simulated seconds."""
    return max(0.0, float(record["duration_s"] - record["done_s"]))


def _real_time(at_s: float, before: Moment, now: Moment) -> float:
    """Return when it was `at_s`, between the last observation and this one."""
    passed_s = now.sim_s - before.sim_s
    frac = (at_s - before.sim_s) / passed_s if passed_s > 0 else 1.0
    return before.real_s + min(1.0, max(0.0, frac)) * (now.real_s - before.real_s)


def _observation(uid: str, attempt: int, part: Part, record: Mapping[str, Any]) -> Observation:
    started_s, finished_s = record["started_s"], record["finished_s"]
    saved_s = record["checkpoint"]["real_s"] if record["checkpoint"] else None
    if finished_s is not None:
        return Observation(
            uid, attempt, part.phase, started_s, finished_s,
            part.exit_code, part.reason, part.message, checkpointed_s=saved_s,
        )  # fmt: skip
    if started_s is None:
        return Observation(uid, attempt, Phase.STARTING)
    busy, full = _fractions(f"{uid}.{attempt}")[3:5]
    replicas = record["replicas"]
    return Observation(
        uid,
        attempt,
        Phase.RUNNING,
        started_s,
        cpu_frac=record["cpu_milli"] / 1000 * replicas * (0.6 + 0.35 * busy),
        memory_mib=int(record["memory_mib"] * replicas * (0.5 + 0.3 * full)),
        checkpointed_s=saved_s,
    )


def _fractions(key: str) -> list[float]:
    """Return eight numbers in 0..1 that depend on `key` alone."""
    digest = hashlib.sha256(key.encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "big") / 2**32 for i in range(0, 32, 4)]


def _read(path: Path) -> dict[str, Any] | None:
    record = read_record(path)
    if record is not None and not record.keys() >= FIELDS:
        raise CorruptRecordError(f"{path.name} lacks a field")
    return None if record is None else {**RESUMED, **record}


def _same(now_s: float) -> float:
    return now_s
