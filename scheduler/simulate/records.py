"""What is known of each job while the simulation runs."""

import math
from dataclasses import dataclass

from scheduler.simulate.jobs import SimJob
from scheduler.simulate.result import End, Eta, History


@dataclass(slots=True)
class Record:
    """What was seen of one job so far; see `History`.

    Attributes:
        safe: the work that is done and saved, in units of work.
        resized_to: replicas that it was last told to have; more are not given it ...
        resized_until_s: ... before this time, epoch seconds.
    """

    job: SimJob
    starts: list[float]
    safe: float = 0.0
    state: End = End.WAITING
    end_s: float | None = None
    evictions: int = 0
    losses: int = 0
    resizes: int = 0
    lost_s: float = 0.0
    lost_device_s: float = 0.0
    eta: Eta | None = None
    resized_to: int = 0
    resized_until_s: float = -math.inf

    def most(self, now_s: float) -> int:
        """Return how many replicas it may have now, as the portal's `snapshots.job_spec` does."""
        spec = self.job.spec
        if now_s >= self.resized_until_s:
            return spec.replicas_max
        return min(spec.replicas_max, max(spec.replicas_min, self.resized_to))

    def history(self) -> History:
        """Return it as it stands."""
        spec = self.job.spec
        return History(
            uid=spec.uid,
            tenant=spec.tenant,
            submitted_s=spec.submitted_s,
            state=self.state,
            starts=tuple(self.starts),
            end_s=self.end_s,
            evictions=self.evictions,
            losses=self.losses,
            resizes=self.resizes,
            lost_s=self.lost_s,
            lost_device_s=self.lost_device_s,
            eta=self.eta,
            device_milli=spec.shape.device_milli * spec.replicas_min,
        )
