"""Compilation of the placement scores, with its type kept for the checker.

Only what needs a compiled score imports this: numba takes a quarter of a second to load, and some
seconds to compile. What was compiled is kept where NUMBA_CACHE_DIR says; without it, it is compiled
anew in every process. The folder must be another one after any change of these modules, as numba
does not see that a function changed which another one calls.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import config, njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled to machine code on first use; floats are IEEE, as in Python."""
    try:
        made = njit(function, cache=bool(getattr(config, "CACHE_DIR", "")))
    except RuntimeError:  # there is nowhere to write to
        made = njit(function)
    return cast("Callable[P, R]", made)
