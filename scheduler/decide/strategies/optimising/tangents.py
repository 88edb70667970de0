"""A logarithm as a lower envelope of tangents: concave, so a maximising program needs no integers.

Tangents lie on or above the logarithm. Between two that touch at a and q a the envelope is highest
above it where they cross; with m = q ln q / (q - 1) the error there is m - 1 - ln m, whatever a is.

Source: Kelley, "The Cutting-Plane Method for Solving Convex Programs", Journal of the SIAM 8
(1960), for tangents in place of a concave function; the error is worked out above.
"""

import math
from typing import NamedTuple

RATIO = 1.15
"""Points of contact grow by this factor: the error stays under 0.0025."""


class Tangent(NamedTuple):
    """The line slope * x + intercept."""

    slope: float
    intercept: float


def tangents(low: float, high: float, ratio: float = RATIO) -> tuple[Tangent, ...]:
    """Return tangents of the natural logarithm that touch it from `low` to `high`.

    Args:
        low: first point of contact, > 0.
        high: last point of contact, >= low.
        ratio: > 1, between neighbouring points of contact; adjusted down to hit `high`.
    """
    steps = max(1, math.ceil(math.log(high / low) / math.log(ratio) - 1e-12))
    factor = (high / low) ** (1 / steps)
    points = [low * factor**k for k in range(steps + 1)] if high > low else [low]
    return tuple(Tangent(1 / x, math.log(x) - 1) for x in points)
