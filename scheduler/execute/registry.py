"""Finds the executor of a cluster's kind; built once a process."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from scheduler.execute.base import EXECUTORS, Executor, ExecutorSettings


def load(path: str) -> Callable[..., Any]:
    """Return the function at a dotted import path."""
    module, _, name = path.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


@lru_cache(maxsize=64)
def _build(kind: str, cluster: str, options: tuple[tuple[str, Any], ...]) -> Executor:
    executor: Executor = load(EXECUTORS[kind])(
        ExecutorSettings(cluster=cluster, options=dict(options))
    )
    return executor


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
