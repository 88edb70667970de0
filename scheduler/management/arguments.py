"""Numbers of a command line, within bounds: what is none is answered with one sentence."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable

from scheduler.decide.bounds import MOST_SEED
from scheduler.simulate.jobs import LEAST_CHECKPOINT_S


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads a whole number within bounds, for argparse's `type`; None = no upper one.

    It raises ArgumentTypeError where the text is no such number.
    """

    def read(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least or (most is not None and found > most):
            raise ArgumentTypeError(
                f"{text!r} is not a whole number {_bounds('from', least, most)}"
            )
        return found

    return read


def number(
    least: float, most: float | None = None, *, above: bool = False
) -> Callable[[str], float]:
    """Return what reads a finite number within bounds, for argparse's `type`; None = no upper one.

    It raises ArgumentTypeError where the text is no such number.

    Args:
        least: the smallest.
        most: the largest.
        above: the smallest itself is too small.
    """

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        enough = found > least if above else found >= least
        if not enough or found == math.inf or (most is not None and found > most):
            begin = "above" if above else "from"
            raise ArgumentTypeError(f"{text!r} is not a number {_bounds(begin, least, most)}")
        return found

    return read


def interval(text: str) -> float:
    """Return the seconds between checkpoints: 0 for never, or what the simulator's jobs may have.

    Raises:
        ArgumentTypeError: it is neither.
    """
    every_s = number(0)(text)
    if 0 < every_s < LEAST_CHECKPOINT_S:
        raise ArgumentTypeError(f"{text!r} is neither 0 nor {LEAST_CHECKPOINT_S:g} at least")
    return every_s


def seed(text: str) -> int:
    """Return a seed of chance.

    Raises:
        ArgumentTypeError: it is none.
    """
    return whole(0, MOST_SEED)(text)


def seeds(text: str) -> list[int]:
    """Return seeds of chance that are separated by commas.

    Raises:
        ArgumentTypeError: one of them is none.
    """
    return [seed(one) for one in text.split(",")]


def _bounds(begin: str, least: float, most: float | None) -> str:
    return f"{begin} {least}" if most is None else f"{begin} {least} to {most}"
