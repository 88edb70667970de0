"""Is advice true? Each change is made, and the whole queue decided again."""

from collections.abc import Callable

from scheduler.core.plan import Plan
from scheduler.core.reasons import NEVER
from scheduler.core.snapshot import Snapshot
from scheduler.decide.remedies import apply
from tests.builders import with_pending


def assert_advice_is_true(snapshot: Snapshot, plan_of: Callable[[Snapshot], Plan]) -> None:
    """With the change the job starts now, if so much was said, or it can run at all."""
    jobs = {job.uid: job for job in snapshot.pending}
    for pending in plan_of(snapshot).pending:
        for remedy in pending.remedies:
            if remedy.code == "later":
                continue
            world, changed = apply(snapshot, jobs[pending.uid], remedy)
            others = [job for job in snapshot.pending if job.uid != pending.uid]
            tried = plan_of(with_pending(world, [*others, changed]))
            if remedy.params.get("starts_now"):
                assert pending.uid in {s.uid for s in tried.starts}, remedy
            elif pending.code in NEVER:
                after = {p.uid: p.code for p in tried.pending}
                assert after.get(pending.uid) not in NEVER, remedy
