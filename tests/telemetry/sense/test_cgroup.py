"""Limits of control groups, versions 1 and 2, in pretended file systems."""

from pathlib import Path

import pytest

from telemetry.sense.cgroup import Limits, parse_cpu_max, parse_membership, read_limits

MIB = 1024 * 1024
V1_NONE = "9223372036854771712\n"


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def test_without_proc_nothing_is_limited(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == Limits()


def test_version_2_in_a_container(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/memory.max": f"{4096 * MIB}\n",
            "sys/fs/cgroup/memory.current": f"{1000 * MIB}\n",
            "sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {300 * MIB}\n",
        },
    )
    assert read_limits(tmp_path) == Limits(2500, 4096 * MIB, 700 * MIB)


def test_the_smallest_limit_on_the_way_up_binds(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/system.slice/kilter.service\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/system.slice/cpu.max": "100000 100000\n",
            "sys/fs/cgroup/system.slice/memory.max": "max\n",
            "sys/fs/cgroup/system.slice/kilter.service/cpu.max": "max 100000\n",
            "sys/fs/cgroup/system.slice/kilter.service/memory.max": f"{64 * MIB}\n",
            "sys/fs/cgroup/system.slice/kilter.service/memory.current": f"{10 * MIB}\n",
        },
    )
    assert read_limits(tmp_path) == Limits(1000, 64 * MIB, 10 * MIB)


def test_version_2_without_limits(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/cpu.max": "max 100000\n",
            "sys/fs/cgroup/memory.max": "max\n",
        },
    )
    assert read_limits(tmp_path) == Limits()


def test_version_1_at_the_hosts_path(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": V1_NONE,
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{512 * MIB}\n",
            "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": f"{200 * MIB}\n",
            "sys/fs/cgroup/memory/docker/abc/memory.stat": f"total_inactive_file {50 * MIB}\n",
        },
    )
    assert read_limits(tmp_path) == Limits(1500, 512 * MIB, 150 * MIB)


def test_version_1_in_a_container_that_sees_only_the_mount(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{256 * MIB}\n",
        },
    )
    assert read_limits(tmp_path) == Limits(500, 256 * MIB, None)


def test_version_1_without_limits(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": V1_NONE,
        },
    )
    assert read_limits(tmp_path) == Limits()


def test_a_path_with_dots_stays_below_the_mount(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../../outside\n",
            "sys/fs/cgroup/cgroup.controllers": "\n",
            "outside/cpu.max": "1 100000\n",
        },
    )
    assert read_limits(tmp_path).cpu_milli is None


def test_membership_of_both_versions() -> None:
    lines = ["12:cpu,cpuacct:/a", "1:name=systemd:/b", "0::/c:d", "nonsense", ""]
    assert parse_membership(lines) == {
        "cpu": "/a",
        "cpuacct": "/a",
        "name=systemd": "/b",
        "": "/c:d",
    }


CPU_MAX = {
    "one core": ("100000 100000", 1000),
    "a part of a core": ("12500 50000", 250),
    "no limit": ("max 100000", None),
    "the period left out": ("200000", 2000),
    "a period of zero": ("100000 0", None),
    "nothing": ("", None),
    "nonsense": ("lots 100000", None),
    "a minus sign": ("-1 100000", None),
}


@pytest.mark.parametrize(("text", "expected"), CPU_MAX.values(), ids=CPU_MAX.keys())
def test_cpu_max(text: str, expected: int | None) -> None:
    assert parse_cpu_max(text) == expected
