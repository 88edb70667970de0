"""Bindings for tests of executors."""

import uuid
from typing import Any

from scheduler.execute.base import Binding, ReplicaBinding


def binding(command: str = "echo done", **changes: Any) -> Binding:
    """Return a small job of one replica, ended after 20 s at the latest."""
    values: dict[str, Any] = {
        "uid": str(uuid.uuid4()),
        "attempt": 1,
        "name": "a <b>name</b>/../with;anything",
        "command": command,
        "image": "",
        "env": {},
        "cpu_milli": 1000,
        "memory_mib": 512,
        "time_limit_s": 20.0,
        "grace_s": 0.5,
        "replicas": replicas(1),
    }
    return Binding(**{**values, **changes})


def replicas(count: int, **changes: Any) -> tuple[ReplicaBinding, ...]:
    """Return `count` replicas on one node."""
    return tuple(ReplicaBinding(index, "here", **changes) for index in range(count))
