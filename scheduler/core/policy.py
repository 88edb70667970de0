"""How an admin wants decisions made: weights and switches, no state."""

from dataclasses import dataclass, field

SOLVERS = ("highs", "cbc")
"""Solvers of the optimising strategy; what is not installed is replaced by the first."""


@dataclass(frozen=True, slots=True)
class PriorityWeights:
    """Weights of the multifactor order; each factor lies in 0..1.

    Source: Slurm priority_multifactor (sum of weight * factor).
    """

    priority_class: float = 1000.0
    fair_share: float = 500.0
    age: float = 300.0
    size: float = 50.0
    age_max_s: float = 7 * 86400.0
    qos: float = 100.0


@dataclass(frozen=True, slots=True)
class QosFactors:
    """Factor of quality of service in 0..1 by job kind.

    Those whom somebody waits for at a screen go a little ahead by default.

    Source: Slurm priority_multifactor, the QOS factor; there a job names its QOS, here its kind.
    """

    training: float = 0.0
    inference: float = 1.0
    batch: float = 0.0
    notebook: float = 1.0

    def of(self, kind: str) -> float:
        """Return the factor of a job kind, 0 for one that is not known."""
        return float(getattr(self, kind)) if kind in self.__dataclass_fields__ else 0.0


@dataclass(frozen=True, slots=True)
class ObjectiveWeights:
    """Weights a, b, c, d of `a log U + b log P + c sum_t w_t log(share_t) - d energy`.

    See `decide/objective.py`.
    """

    utilisation: float = 1.0
    performance: float = 1.0
    fairness: float = 1.0
    energy: float = 0.1


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """When a running job may be evicted for another, and how often.

    Attributes:
        by_priority: a job may evict jobs of lower priority within its tenant's reach.
        by_reclaim: a tenant below its quota may claim it back from those above theirs.
        delay_s: a job waits this long before anybody is evicted for it.
        min_runtime_s: nobody is evicted that ran for less since its last start; who has more
            replicas than it needs may be shrunk to those.
        most_evictions: a job that was evicted so often is left alone.
        grace_s: between the order to end and the end, for a checkpoint.
        by_fair_share: a tenant that borrows may take from one that borrows more for its weight.

    Source: YuniKorn design/preemption.md (laws, delay); KAI preemptMinRuntime, reclaimMinRuntime,
    MaintainFairShare; Kueue fairSharing.preemptionStrategies, LessThanOrEqualToFinalShare.
    """

    by_priority: bool = False
    by_reclaim: bool = True
    delay_s: float = 60.0
    min_runtime_s: float = 600.0
    most_evictions: int = 3
    grace_s: float = 30.0
    by_fair_share: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """One cluster's policy.

    Attributes:
        strategy: key of `STRATEGIES`: rules or optimising; decides the kinds not in `kinds`.
        budget_s: seconds that a decision may take.
        placement: score that chooses among feasible nodes, a key of `scoring.SCORES`.
        order: weights of the queue order.
        objective: weights of the optimising strategy.
        seed: of every random choice.
        preemption: when running jobs may be evicted.
        qos: factor of quality of service by job kind.
        backfill_depth: so many blocked jobs get a planned start and a reservation.
        remedy_depth: so many blocked jobs, the first of the queue, are told what would help.
        expects_starts: say when blocked jobs are expected to start; a simulation may do without.
        solver: of the optimising strategy, one of `SOLVERS`.
        kinds: (job kind, strategy) of the kinds of jobs that another strategy decides than
            `strategy`; within a priority class those that the rules decide go first.
        shadow: strategy that decides on the same snapshot for comparison only; "" = none.
        power_cap_w: nothing starts that would raise the board power of what is allocated above
            this; a share of a device counts with its part. None = no cap.
        patience_s: who waits for so long has its turn as under the rules, whatever strategy decides
            of its kind: others are no longer chosen before it.
    """

    strategy: str = "optimising"
    budget_s: float = 1.0
    placement: str = "pack"
    order: PriorityWeights = field(default_factory=PriorityWeights)
    objective: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    seed: int = 0
    preemption: PreemptionPolicy = field(default_factory=PreemptionPolicy)
    qos: QosFactors = field(default_factory=QosFactors)
    backfill_depth: int = 100  # Slurm's bf_max_job_test
    remedy_depth: int = 10
    expects_starts: bool = True
    solver: str = "highs"
    kinds: tuple[tuple[str, str], ...] = ()
    shadow: str = ""
    power_cap_w: float | None = None
    patience_s: float = 86400.0

    def strategy_of(self, kind: str) -> str:
        """Return the strategy that decides jobs of a kind."""
        return dict(self.kinds).get(kind, self.strategy)
