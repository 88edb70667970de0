"""The local executor: runs jobs as processes of this machine, each attempt under a supervisor."""

from scheduler.execute.base import Executor, ExecutorSettings


def build(settings: ExecutorSettings) -> Executor:
    """Return the local executor.

    Args:
        settings: options are `folder` (where state is kept; needed), `log_cap_bytes` (of each
            attempt, 64 MiB by default), `run_as` (a user's name; by default, where we are root, a
            user id of its own for each job) and `path` (PATH of the jobs).

    Raises:
        ExecutorRejectedError: an option is wrong, or this is not Linux.
    """
    # The supervisor imports this package too, and must be quick to start.
    from scheduler.execute.local.executor import LocalExecutor  # noqa: PLC0415

    return LocalExecutor.of(settings)
