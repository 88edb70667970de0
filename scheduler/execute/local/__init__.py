"""The local executor: runs jobs as processes of this machine, each attempt under a supervisor."""

from scheduler.execute.base import Executor, ExecutorSettings


def build(settings: ExecutorSettings) -> Executor:
    """Return the local executor.

    Args:
        settings: options are `folder` (where state is kept; needed), `log_cap_bytes` (of each
            attempt, 64 MiB by default), `run_as` (a user's name; by default, where we are root, a
            user id of its own for each job), `path` (PATH of the jobs), `shown` (folders
            that every job may read though they lie in closed ones), `hidden` (folders that
            no job may see, where the kernel lets us hide them) and `work` (where their
            work folders lie; by default below `folder`, or in /var/tmp where jobs of other users
            can't pass through to it).

    Raises:
        ExecutorRejectedError: an option is wrong, or this is not Linux.
    """
    # The supervisor imports this package too, and must be quick to start.
    from scheduler.execute.local.executor import LocalExecutor  # noqa: PLC0415

    return LocalExecutor.of(settings)
