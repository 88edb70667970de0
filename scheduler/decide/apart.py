"""Which nodes a group of jobs holds, and when: jobs of one group never share a node.

Nobody is evicted to keep others apart: a node is closed for as long as a job of the group is
expected to be on it, as for a reservation.

Source: OpenStack Nova, server groups with the policy anti-affinity; Kubernetes, required pod
anti-affinity by node, which is symmetric as well.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from scheduler.core.snapshot import IntArray, JobSpec, ReplicaPlacement

Group: TypeAlias = tuple[str, str]
"""Tenant and name of a group."""


class _Stay(NamedTuple):
    """A job of a group is on a node in [start_s, end_s)."""

    uid: str
    node: int
    start_s: float
    end_s: float


class Apart:
    """The stays of all groups: of what runs, was started in this cycle, or is planned."""

    def __init__(self) -> None:
        self._stays: dict[Group, list[_Stay]] = {}

    def note(
        self, job: JobSpec, replicas: Sequence[ReplicaPlacement], start_s: float, end_s: float
    ) -> None:
        """Note where a job is from when until when."""
        group = group_of(job)
        if group:
            nodes = sorted({replica.node for replica in replicas})
            stays = self._stays.setdefault(group, [])
            stays += [_Stay(job.uid, node, start_s, end_s) for node in nodes]

    def leave(self, job: JobSpec, kept: Sequence[ReplicaPlacement], end_s: float) -> None:
        """Note that a job leaves all nodes but those of the replicas that it keeps."""
        group, stays_on = group_of(job), {replica.node for replica in kept}
        if group:
            self._stays[group] = [
                stay._replace(end_s=min(stay.end_s, end_s))
                if stay.uid == job.uid and stay.node not in stays_on
                else stay
                for stay in self._stays.get(group, ())
            ]

    def closed(self, group: Group, begin_s: float, end_s: float) -> IntArray:
        """Return the nodes that a job of the group which runs in [begin_s, end_s) must not use.

        With an end at or before the begin, those that are closed at that moment.
        """
        nodes = {
            stay.node
            for stay in self._stays.get(group, ())
            if stay.end_s > begin_s and (stay.start_s < end_s or stay.start_s <= begin_s)
        }
        return np.array(sorted(nodes), dtype=np.int64)


def group_of(job: JobSpec) -> Group | None:
    """Return the group of a job, None for none."""
    return (job.tenant, job.anti_affinity) if job.anti_affinity else None
