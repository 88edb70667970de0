"""What the local executor refuses, before anything is written."""

from pathlib import Path
from typing import Any

import pytest

from scheduler.execute.base import ExecutorRejectedError, ExecutorSettings
from scheduler.execute.local import build
from tests.scheduler.execute.builders import binding, replicas
from tests.scheduler.execute.local.conftest import Bench

UID = "0b5e7a52-6f0e-4d8e-9d2c-3f1f0c9d8e7a"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a path for a uid": ({"uid": "../../etc"}, "not a UUID"),
    "an absolute path for a uid": ({"uid": "/etc/passwd"}, "not a UUID"),
    "a uid with a newline": ({"uid": UID + "\n"}, "UUID|normal form"),
    "a uid in braces": ({"uid": "{" + UID + "}"}, "normal form"),
    "a uid in capitals": ({"uid": UID.upper()}, "normal form"),
    "attempt 0": ({"attempt": 0}, "normal form"),
    "a negative attempt": ({"attempt": -1}, "normal form"),
    "an image": ({"image": "pytorch:latest"}, "processes, not images"),
    "no replica": ({"replicas": ()}, "no replica"),
    "one replica twice": ({"replicas": replicas(1) * 2}, "same index"),
    "a NUL in the command": ({"command": "echo a\0b"}, "NUL"),
    "an empty command": ({"command": " \n"}, "empty"),
    "half a surrogate pair": ({"command": "echo \ud800"}, "surrogate"),
    "a variable without name": ({"env": {"": "x"}}, "environment variable"),
    "a variable named with =": ({"env": {"A=B": "x"}}, "environment variable"),
    "a NUL in a variable": ({"env": {"A": "x\0"}}, "environment variable"),
    "a variable too long for Linux": ({"env": {"A": "x" * 131072}}, "128 KiB"),
    "too much in all variables": ({"env": {f"A{i}": "x" * 99_000 for i in range(12)}}, "1 MiB"),
    "an endless time limit": ({"time_limit_s": float("inf")}, "time_limit_s"),
    "a time limit that is no number": ({"time_limit_s": float("nan")}, "time_limit_s"),
    "no time": ({"time_limit_s": 0.0}, "above 0"),
    "a negative grace": ({"grace_s": -1.0}, "grace_s"),
    "no memory": ({"memory_mib": 0}, "above 0"),
}


@pytest.mark.parametrize(("changes", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_bind_refuses(bench: Bench, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ExecutorRejectedError, match=says) as failure:
        bench.executor.bind(binding(**changes))
    assert not failure.value.retryable
    assert list((bench.folder / "active").iterdir()) == []


def test_no_call_follows_a_path_in_a_uid(bench: Bench) -> None:
    for uid in ("../ended", "..", "/", "a/b"):
        with pytest.raises(ExecutorRejectedError):
            bench.executor.evict(uid, 1, grace_s=0.0, reason="user")
        with pytest.raises(ExecutorRejectedError):
            bench.executor.forget(uid, 1)
        with pytest.raises(ExecutorRejectedError):
            bench.executor.log(uid, 1, since=0, limit=1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({}, "needs the option 'folder'", id="no folder"),
        pytest.param({"folder": 3}, "'folder' must be a folder", id="a folder that is none"),
        pytest.param({"folder": "/tmp/x", "shown": "/etc"}, "list of folders", id="no list"),
        pytest.param({"folder": "/tmp/x", "log_cap_bytes": "1e3"}, "bytes", id="no number"),
        pytest.param({"folder": "/tmp/x", "run_as": 0}, "must be a text", id="no name"),
        pytest.param({"folder": "/tmp/x", "colour": 1}, "unknown option 'colour'", id="unknown"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(ExecutorRejectedError, match=says):
        build(ExecutorSettings("here", options))


def test_an_unknown_user_is_named(bench: Bench) -> None:
    with pytest.raises(ExecutorRejectedError, match="no user 'nobody-such'"):
        bench.again(run_as="nobody-such").executor.bind(binding())


def test_a_work_folder_that_somebody_else_made_is_not_used(bench: Bench, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.symlink_to("/etc")
    with pytest.raises(ExecutorRejectedError, match="belongs to somebody else"):
        bench.again(work=trap).executor.bind(binding())
