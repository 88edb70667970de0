"""How an admin wants decisions made: weights and switches, no state."""

from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class ObjectiveWeights:
    """Weights of `a log U + b log P + c sum_t w_t log(share_t) - d energy` (DESIGN section 4)."""

    utilisation: float = 1.0
    performance: float = 1.0
    fairness: float = 1.0
    energy: float = 0.1


@dataclass(frozen=True, slots=True)
class Policy:
    """One cluster's policy.

    Attributes:
        strategy: key of `STRATEGIES`: rules or optimising.
        budget_s: seconds that a decision may take.
        placement: score that chooses among feasible nodes: pack or spread.
        order: weights of the queue order.
        objective: weights of the optimising strategy.
        seed: of every random choice.
    """

    strategy: str = "optimising"
    budget_s: float = 1.0
    placement: str = "pack"
    order: PriorityWeights = field(default_factory=PriorityWeights)
    objective: ObjectiveWeights = field(default_factory=ObjectiveWeights)
    seed: int = 0
