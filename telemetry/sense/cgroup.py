"""What the control group of this process allows: CPU, memory, and the memory used within it.

In a container, /proc/meminfo and the CPU count show the whole machine; jobs there may use only what
the control group allows. A limit of any ancestor binds too, so the smallest on the way up counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

V1_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as a number near 2^63; no machine has an exbibyte."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed; None = no limit is set.

    Attributes:
        cpu_milli: thousandths of a core.
        memory_bytes: in total.
        memory_used_bytes: used within the group without reclaimable file cache; None = not told.
    """

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None


def read_limits(root: Path = Path("/")) -> Limits:
    """Return the limits of the control group that this process is in, version 2 or 1.

    Args:
        root: of the file system, for tests.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text("ascii", "replace").splitlines()
    except OSError:
        return Limits()
    paths = parse_membership(lines)
    mount = root / "sys/fs/cgroup"
    if (mount / "cgroup.controllers").exists():
        return _read_v2(list(_upwards(mount, paths.get("", "/"))))
    return Limits(
        cpu_milli=_least(
            _v1_cpu_milli(folder) for folder in _upwards(mount / "cpu", paths.get("cpu", "/"))
        ),
        **_v1_memory(list(_upwards(mount / "memory", paths.get("memory", "/")))),
    )


def parse_membership(lines: list[str]) -> dict[str, str]:
    """Return controller -> path from the lines of /proc/self/cgroup; version 2 is controller ""."""
    found: dict[str, str] = {}
    for line in lines:
        number_controllers_path = line.split(":", 2)
        if len(number_controllers_path) == len("n:c"):
            for controller in number_controllers_path[1].split(","):
                found[controller] = number_controllers_path[2]
    return found


def parse_cpu_max(text: str) -> int | None:
    """Return thousandths of a core from a version 2 `cpu.max`, None for `max` or nonsense."""
    quota, _, period = text.strip().partition(" ")
    return _milli(quota, period or "100000")


def _milli(quota: str, period: str) -> int | None:
    if not (quota.isdecimal() and period.isdecimal()) or int(period) == 0:
        return None
    return int(quota) * 1000 // int(period)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Yield the group's folder and its ancestors; in a container only the mount may exist."""
    parts = [part for part in path.split("/") if part not in {"", "..", "."}]
    for length in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:length])
        if folder.is_dir():
            yield folder


def _read_v2(folders: list[Path]) -> Limits:
    used, cache = None, 0
    limits = [(_number(folder / "memory.max"), folder) for folder in folders]
    bound = min(((limit, folder) for limit, folder in limits if limit is not None), default=None)
    if bound is not None:
        used = _number(bound[1] / "memory.current")
        cache = _stat(bound[1] / "memory.stat", "inactive_file")
    return Limits(
        cpu_milli=_least(parse_cpu_max(_text(folder / "cpu.max")) for folder in folders),
        memory_bytes=None if bound is None else bound[0],
        memory_used_bytes=None if used is None else max(used - cache, 0),
    )


def _v1_cpu_milli(folder: Path) -> int | None:
    return _milli(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _v1_memory(folders: list[Path]) -> dict[str, int | None]:
    limits = [(_number(folder / "memory.limit_in_bytes"), folder) for folder in folders]
    bound = min(
        ((limit, folder) for limit, folder in limits if limit and limit < V1_UNLIMITED_BYTES),
        default=None,
    )
    if bound is None:
        return {}
    used = _number(bound[1] / "memory.usage_in_bytes")
    cache = _stat(bound[1] / "memory.stat", "total_inactive_file")
    return {
        "memory_bytes": bound[0],
        "memory_used_bytes": None if used is None else max(used - cache, 0),
    }


def _least(amounts: Iterator[int | None]) -> int | None:
    return min((amount for amount in amounts if amount is not None), default=None)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _stat(path: Path, key: str) -> int:
    for line in _text(path).splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.isdecimal():
            return int(value)
    return 0
