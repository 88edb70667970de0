"""Finds the executor of a cluster's kind; built once a process."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from scheduler.execute.base import EXECUTORS, Executor, ExecutorSettings


@lru_cache(maxsize=64)
def _build(kind: str, cluster: str, options: tuple[tuple[str, Any], ...]) -> Executor:
    module, _, name = EXECUTORS[kind].rpartition(".")
    build: Callable[[ExecutorSettings], Executor] = getattr(import_module(module), name)
    return build(ExecutorSettings(cluster=cluster, options=dict(options)))


def executor_for(kind: str, cluster: str, options: dict[str, Any]) -> Executor:
    """Return the executor of a cluster.

    Args:
        kind: key of EXECUTORS.
        cluster: slug.
        options: of that executor; values must be hashable.

    Raises:
        KeyError: there is no such kind.
        ExecutorRejectedError: an option is wrong.
    """
    return _build(kind, cluster, tuple(sorted(options.items())))
