"""Fair share: what is fair now (`division`), who may borrow next (`dominant`), who had how much.

docs/adr/0010-fair-share.md says how the three live together.
"""

from scheduler.decide.fairness.division import Claim, divide
from scheduler.decide.fairness.dominant import DominantShares, Level, weighted_share
from scheduler.decide.fairness.shares import FairShares

__all__ = ["Claim", "DominantShares", "FairShares", "Level", "divide", "weighted_share"]
