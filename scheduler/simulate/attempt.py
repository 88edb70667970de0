"""One attempt of a job: what it holds, and how far its work has come."""

import math
from dataclasses import dataclass, replace

from scheduler.core.snapshot import ReplicaPlacement, RunningJob
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.result import End, Span


@dataclass(slots=True)
class Attempt:
    """A running job.

    Attributes:
        job: the truth about it.
        running: what decisions see of it.
        flavor: of its devices, "" for none.
        rate: units of work a second.
        safe: units of work that are done and saved.
        since_s: from then on the work is done that is not saved; later than now while it starts up.
        held_s: since when it holds what it holds now.
        token: events that were planned under another one are void.
        kept_s: seconds of work since `held_s` that are saved.
        target: what it goes on with when it leaves what it holds; () = it waits again.
        beneficiary: for whom it was told to leave; "" = nobody.
    """

    job: SimJob
    running: RunningJob
    flavor: str
    rate: float
    safe: float
    since_s: float
    held_s: float
    token: int
    kept_s: float = 0.0
    target: tuple[ReplicaPlacement, ...] = ()
    beneficiary: str = ""

    @classmethod
    def begin(
        cls,
        job: SimJob,
        running: RunningJob,
        flavor: str,
        *,
        safe: float,
        token: int,
    ) -> "Attempt":
        """Return an attempt that has just started."""
        now_s, rate = running.started_s, job.rate(flavor, len(running.replicas))
        return cls(job, running, flavor, rate, safe, now_s + job.startup_s, now_s, token)

    def end(self) -> tuple[float, End]:
        """Return when it ends by itself, and how: done, failed or out of time."""
        left = max(0.0, self.job.work - self.safe)
        done_s = self.since_s + left / self.rate if self.rate > 0 else math.inf
        began_s = self.running.started_s
        failed_s = began_s + self.job.fails_after_s
        limit_s = began_s + self.running.spec.time_limit_s
        first = min(done_s, failed_s, limit_s)
        if first == done_s:
            return first, End.COMPLETED
        return first, End.FAILED if first == failed_s else End.TIMED_OUT

    def save_due(self, now_s: float) -> bool:
        """Save the work up to the last checkpoint that was due, and return whether there was one.

        Checkpoints change nothing until somebody looks: years of them cost no more than one.
        """
        every_s = self.job.checkpoint_every_s
        if not every_s or now_s - self.since_s < every_s:
            return False
        self.save(self.since_s + (now_s - self.since_s) // every_s * every_s)
        return True

    def save(self, now_s: float) -> None:
        """Save the work that was done until now."""
        worked_s = now_s - self.since_s
        if worked_s > 0:
            self.safe += self.rate * worked_s
            self.kept_s += worked_s if self.rate > 0 else 0.0
            self.since_s = now_s
            self.running = replace(self.running, checkpointed_s=now_s)

    def lost_s(self, now_s: float) -> float:
        """Return the seconds of work that are lost if it stops now; who gets nothing done, none."""
        return max(0.0, now_s - self.since_s) if self.rate > 0 else 0.0

    def device_milli(self) -> int:
        """Return the thousandths of devices that it holds."""
        return self.running.spec.shape.device_milli * len(self.running.replicas)

    def span(self, now_s: float, *, final: bool, lost: bool) -> Span:
        """Return what it held until now.

        Args:
            now_s: epoch seconds.
            final: the job ends with it.
            lost: what was not saved has to be done again.
        """
        spec, count = self.running.spec, len(self.running.replicas)
        kept_s = self.kept_s + (0.0 if lost else self.lost_s(now_s))
        return Span(
            spec.uid,
            spec.tenant,
            self.flavor,
            count,
            spec.shape.cpu_milli * count,
            spec.shape.device_milli * count,
            self.held_s,
            now_s,
            kept_s,
            final,
            self.job.startup_s,
        )
