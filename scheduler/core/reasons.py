"""Why a job waits: one list, in order; the first that holds is the answer.

Source: Kueue KEP-10852 (tiered reasons), in this house's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class WaitReason(StrEnum):
    """The codes, in the order in which they are asked."""

    ON_HOLD = "on_hold"
    MISCONFIGURED = "misconfigured"
    NO_MATCHING_FLAVOR = "no_matching_flavor"
    NEVER_FITS = "never_fits"
    EXCEEDS_MAX_QUOTA = "exceeds_max_quota"
    EXCEEDS_POWER_CAP = "exceeds_power_cap"
    AWAITING_APPROVAL = "awaiting_approval"
    BUDGET_SPENT = "budget_spent"
    BACKING_OFF = "backing_off"
    WAITING_FOR_PREEMPTED_JOBS = "waiting_for_preempted_jobs"
    WAITING_FOR_QUOTA = "waiting_for_quota"
    WAITING_FOR_POWER = "waiting_for_power"
    NODES_UNAVAILABLE = "nodes_unavailable"
    RESERVED = "reserved"
    FRAGMENTED = "fragmented"
    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    STARTING = "starting"
    PENDING_EVALUATION = "pending_evaluation"


NEVER = frozenset(
    {
        WaitReason.MISCONFIGURED,
        WaitReason.NO_MATCHING_FLAVOR,
        WaitReason.NEVER_FITS,
        WaitReason.EXCEEDS_MAX_QUOTA,
        WaitReason.EXCEEDS_POWER_CAP,
    }
)
"""Reasons that time alone does not cure: refused at submit, with the remedy."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that would help.

    Attributes:
        code: what to change, e.g. fewer_devices, other_flavor, fewer_replicas, ask_for_quota.
        params: the numbers, e.g. {"devices": 4}; JSON-serialisable.
    """

    code: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pending:
    """Why one job is not started in this plan.

    Attributes:
        uid: the job.
        code: the reason.
        evidence: the numbers behind it, JSON-serialisable: asked, free, quota, who is ahead.
        remedies: what would help, best first.
        expected_start_p50_s, expected_start_p90_s: epoch seconds; None = no estimate, or never.
        position: place in the queue of this cycle, 1 = first; 0 = not in the queue.
        priority_parts: the parts of the job's order; their sum is its priority.
        planned_p50_s, planned_p90_s: the expected starts before past errors were taken into
            account, epoch seconds; kept to learn from (`Expectation`).
    """

    uid: str
    code: WaitReason
    evidence: Mapping[str, object] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    expected_start_p50_s: float | None = None
    expected_start_p90_s: float | None = None
    position: int = 0
    priority_parts: Mapping[str, float] = field(default_factory=dict)
    planned_p50_s: float | None = None
    planned_p90_s: float | None = None
