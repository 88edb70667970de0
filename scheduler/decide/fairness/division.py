"""How a capacity is divided among those who claim it.

Everybody gets what it deserves and asks for. The surplus goes by priority bucket: inside a bucket
by weight bent by past use, and what rounding left goes one unit each by largest remainder, the
older party first, before the bucket below gets anything.

Source: KAI scheduler resource_division.go and docs time-based-fairshare:
`P_i = max(0, W'_i + k (W'_i - U'_i))`, use normalised by capacity. Ours differs in three places:
nobody gets more than it asks for (KAI gives a party that is alone in its bucket all that is left);
where everybody's P is 0 the weights alone decide (KAI divides nothing); and a tenant's past use is
one number, that of the flavor it used most, which bends its weight for every flavor, CPU included
(KAI bends each resource by what was used of it).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

USAGE_WEIGHT_K = 1.0
"""k: how strongly past use bends the weights (KAI's default kValue)."""

ROUNDING = 1e-9
"""A part that misses a whole unit by so little is that unit: it lost it to floating point."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one party brings to a division.

    Attributes:
        name: unique; the last key of every order.
        deserved: what it owns, >= 0.
        requested: what it holds and waits for, >= 0.
        weight: >= 0; a party of weight 0 gets nothing of the surplus.
        usage: decayed use as a fraction of capacity, >= 0.
        priority: bucket, higher first.
        created_s: epoch seconds; the older of two equal remainders is rounded up.
    """

    name: str
    deserved: int
    requested: int
    weight: float = 1.0
    usage: float = 0.0
    priority: int = 0
    created_s: float = 0.0


def divide(total: int, claims: Sequence[Claim], *, unit: int = 1) -> dict[str, int]:
    """Return the fair share of each claim.

    What is deserved and asked for is a promise and is given even where it passes `total`; only the
    surplus is divided. Nobody gets more than it asks for.

    Args:
        total: amount to divide, >= 0.
        claims: the parties; their order does not matter.
        unit: parts of the surplus are rounded down to whole multiples of this.
    """
    ordered = sorted(claims, key=lambda claim: claim.name)
    fair = {claim.name: min(claim.deserved, claim.requested) for claim in ordered}
    left = max(0, total - sum(fair.values()))
    buckets = [
        [claim for claim in ordered if claim.priority == priority]
        for priority in sorted({claim.priority for claim in ordered}, reverse=True)
    ]
    for bucket in buckets:
        given, remainder = _by_weight(left, bucket, fair, unit)
        left -= given
        left -= _by_remainder(left, bucket, remainder, fair, unit)
    return fair


def _by_weight(
    left: int, bucket: Sequence[Claim], fair: dict[str, int], unit: int
) -> tuple[int, dict[str, float]]:
    """Divide a bucket's surplus until nobody asks for less than its part.

    Returns:
        What was given, and name -> the part of a unit that rounding kept from it.
    """
    given, remainder = 0, dict[str, float]()
    while given < left:
        hungry = [claim for claim in bucket if fair[claim.name] < claim.requested]
        parts = _parts(hungry)
        rest, modest = left - given, False
        for claim in hungry:
            part, missing = rest * parts.get(claim.name, 0.0), claim.requested - fair[claim.name]
            if missing <= part or len(parts) == 1:
                share = min(missing, math.floor(part))
                remainder.pop(claim.name, None)
            else:
                units = math.floor(part / unit + ROUNDING)
                share = units * unit
                remainder[claim.name] = max(0.0, part / unit - units)
            modest = modest or missing < part
            fair[claim.name] += share
            given += share
        if not modest:
            break
    return given, remainder


def _parts(hungry: Sequence[Claim]) -> dict[str, float]:
    """Return each party's part of the surplus; they sum to 1, {} if nobody has any."""
    weights = sum(claim.weight for claim in hungry)
    if weights <= 0:
        return {}
    bent = {}
    for claim in hungry:
        w = claim.weight / weights
        bent[claim.name] = max(0.0, w + USAGE_WEIGHT_K * (w - claim.usage)) if w else 0.0
    whole = math.fsum(bent.values())
    if whole <= 0:  # everybody used more than its part: fall back to the weights alone
        return {claim.name: claim.weight / weights for claim in hungry if claim.weight}
    return {name: part / whole for name, part in bent.items() if part > 0}


def _by_remainder(
    left: int,
    bucket: Sequence[Claim],
    remainder: Mapping[str, float],
    fair: dict[str, int],
    unit: int,
) -> int:
    """Give one unit each by largest remainder, then age, then name; return what was given."""
    asking = [claim for claim in bucket if remainder.get(claim.name, 0.0) > ROUNDING]
    given = 0
    for claim in sorted(asking, key=lambda c: (-remainder[c.name], c.created_s, c.name)):
        share = min(unit, left - given, claim.requested - fair[claim.name])
        fair[claim.name] += share
        given += share
    return given
