"""What can be watched: a fleet, a job, one's active jobs, and shares."""

from collections.abc import Iterable

from portal.live.consumer import LiveConsumer
from portal.live.deltas import Rows
from portal.live.groups import Sight, cluster_for, job_for
from portal.live.rows import active_rows, fairness_rows, job_rows
from portal.live.shared import shared_fleet
from scheduler.models import Job
from scheduler.selectors.fleet import for_viewer
from telemetry.models import Cluster
from telemetry.selectors import cluster_list


class FleetConsumer(LiveConsumer):
    """A fleet: `cluster`, `node:<name>` and `device:<uid>`."""

    cluster: Cluster

    def find(self, sight: Sight) -> bool:
        found = cluster_for(sight.user, self.scope["url_route"]["kwargs"]["cluster"])
        if found is not None:
            self.cluster = found
        return found is not None

    def clusters(self) -> Iterable[str]:
        return [self.cluster.slug]

    async def rows(self, sight: Sight) -> Rows:
        return for_viewer(await shared_fleet(self.cluster.slug).rows(), sight.tenant_ids)


class FairnessConsumer(FleetConsumer):
    """The shares of a cluster: `tenant|flavor`, and `cycle`."""

    async def rows(self, sight: Sight) -> Rows:
        return await self.translated(fairness_rows, sight.user, self.cluster)


class JobConsumer(LiveConsumer):
    """One job: `job`, `placement`, `use` and `log`."""

    job: Job

    def find(self, sight: Sight) -> bool:
        found = job_for(sight.user, self.scope["url_route"]["kwargs"]["uid"])
        if found is not None:
            self.job = found
        return found is not None

    def clusters(self) -> Iterable[str]:
        return [self.job.cluster.slug]

    async def rows(self, sight: Sight) -> Rows:
        return await self.translated(self._read, sight)

    def _read(self, sight: Sight) -> Rows:
        return job_rows(sight.user, self.job) if self.find(sight) else {}


class JobsConsumer(LiveConsumer):
    """The viewer's visible active jobs by uid."""

    slugs: tuple[str, ...] = ()

    def find(self, sight: Sight) -> bool:  # noqa: ARG002
        self.slugs = tuple(cluster_list(enabled=True).values_list("slug", flat=True))
        return True

    def clusters(self) -> Iterable[str]:
        return self.slugs

    async def rows(self, sight: Sight) -> Rows:
        return await self.translated(active_rows, sight.user)
