"""Compilation of the placement scores, with its type kept for the checker."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function compiled to machine code on first use; floats are IEEE, as in Python."""
    return cast("Callable[P, R]", njit(function))
