"""What a decision says: who starts where, who waits and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.core.reasons import Pending
from scheduler.core.snapshot import ReplicaPlacement


@dataclass(frozen=True, slots=True)
class Start:
    """Start one job now.

    Attributes:
        uid: the job.
        replicas: one placement per replica, replicas_min <= count <= replicas_max.
        flavor: the accelerator flavor of all replicas, "" for CPU-only.
        score: score of the placement, higher is better; for display.
        priority_parts: the parts of the job's order, e.g. {"age": 12.5}; their sum is its priority.
    """

    uid: str
    replicas: tuple[ReplicaPlacement, ...]
    flavor: str
    score: float = 0.0
    priority_parts: Mapping[str, float] = field(default_factory=dict)


class EvictionCause(StrEnum):
    """Why a job is evicted or shrunk for another."""

    PREEMPTED = "preempted"
    """By a job of higher priority."""
    RECLAIMED = "reclaimed"
    """By a tenant that claims its quota back."""
    REBALANCED = "rebalanced"
    """By a tenant that borrows less for its weight."""
    SHARED = "shared"
    """By a waiting job of its own tenant; only shrunk, of what it can do without."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Evict one running job, whole, so that another may start; it goes back to the queue.

    Attributes:
        uid: the job that is evicted.
        beneficiary: the pending job that room is made for.
        cause: by which law; not `SHARED`.
        evidence: the numbers behind the choice, JSON-serialisable: work lost, shares.
    """

    uid: str
    beneficiary: str
    cause: EvictionCause
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resize:
    """Let a running elastic job go on with other replicas, from its last checkpoint.

    Attributes:
        uid: the job.
        replicas: all that it holds afterwards, replicas_min <= count <= replicas_max; those that
            it keeps are those that it has.
        beneficiary: the pending job that it shrinks for; "" where it grows into idle capacity.
        cause: by which law it shrinks; None where it grows.
    """

    uid: str
    replicas: tuple[ReplicaPlacement, ...]
    beneficiary: str = ""
    cause: EvictionCause | None = None


@dataclass(frozen=True, slots=True)
class FairShareRow:
    """One tenant's standing for one flavor, in the flavor's milli-units.

    Attributes:
        entitled: its nominal quota.
        fair: its fair share now, the surplus divided among those who ask.
        allocated: what it holds.
        requested: what it holds and waits for.
        part: its fair share if everybody asked for everything.
        past_frac: its decayed past use, of its most used flavor, as a fraction of capacity.
    """

    tenant: str
    flavor: str
    entitled: int
    fair: int
    allocated: int
    requested: int
    part: int = 0
    past_frac: float = 0.0


NOT_NEEDED = "not_needed"
"""Status where nothing had to be solved: of the rules, and where nothing could be better."""

FAILED = ("error", "invalid", "late", "timeout")
"""Statuses of a strategy that raised, broke an invariant, came too late, or found nothing in time:
the rules answered for it."""


@dataclass(frozen=True, slots=True)
class SolverReport:
    """How the plan was found.

    Attributes:
        strategy: that answered.
        asked: strategy that was asked; another one where it fell back.
        status: optimal, feasible, rules_kept or not_needed; where the strategy failed and the
            rules answered for it, one of `FAILED`.
        objective: value of the plan under the policy's objective; None for rules alone.
        objective_rules: value of the rules plan under the same objective.
        gap_frac: relative gap to the solver's bound; None where no bound is known.
        wall_s: seconds that the strategy measured through the clock it was given; 0 = none given.
        note: why it fell back, in a few words.
        solver: that was run, "" where none was.
    """

    strategy: str
    asked: str
    status: str
    objective: float | None = None
    objective_rules: float | None = None
    gap_frac: float | None = None
    wall_s: float = 0.0
    note: str = ""
    solver: str = ""


@dataclass(frozen=True, slots=True)
class Clash:
    """Constraints that nothing can meet together.

    Attributes:
        constraints: their names; leave out any one, and the others can be met.
        uid: the job that asks for it; "" where what runs passes a limit.
        numbers: what each of them says, JSON-serialisable.
    """

    constraints: tuple[str, ...]
    uid: str
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer of one cycle.

    Every job of `Snapshot.pending` is in exactly one of `starts` and `pending`; no running job is
    in both `preempts` and `resizes`.

    Attributes:
        lasts_until_s: it stays true until then if nothing but time moves, epoch seconds; 0 = decide
            again at once.
        clashes: constraints that nothing can meet together, in what runs and what is asked for.
        carried_from_s: when it was decided where it is carried over from then, epoch seconds; 0 =
            decided now.
    """

    cluster: str
    now_s: float
    starts: tuple[Start, ...]
    pending: tuple[Pending, ...]
    fair_shares: tuple[FairShareRow, ...]
    solver: SolverReport
    preempts: tuple[Preempt, ...] = ()
    resizes: tuple[Resize, ...] = ()
    lasts_until_s: float = 0.0
    clashes: tuple[Clash, ...] = ()
    carried_from_s: float = 0.0
