"""The potential of a node: what its free parts are worth to the jobs that are yet to come.

A job goes where it destroys the least potential. The worths of gaps are bid prices: duals of an LP
over the demand, so that what a placement costs is what it displaces.

Source: Talluri and van Ryzin, "An Analysis of Bid-Price Controls for Network Revenue Management",
Management Science 44 (1998), for the control; `prices` for the LP, `fragmentation` for that term.
Curve, CPU, scarce models and blocks are our own, found by trying on the traces of the FGD paper:
docs/guides/packing.md, "The score `prices`", says what each is for and what they gave together.
"""

from typing import NamedTuple

from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.fragmentation import fragmentation
from scheduler.decide.scores.prices import GRID_MILLI
from scheduler.decide.scores.state import WHOLE, FloatArray, IntArray, Mix

BLOCKS = (2, 4, 8)
"""Numbers of free devices on one node that have a value of their own."""
CPU_STEPS = 128
"""Levels of free CPU, parts of the largest node's, at which the worth of a block is known."""


class Terms(NamedTuple):
    """What the potential is made of; worths are in devices.

    Attributes:
        gaps: (101,) value of a gap of 0, 10, .. 1000 milli on one device, from LP prices.
        curve: extra worth of an empty device, which falls with the square of its use.
        cpu_wanted: (2,) milli-cores per free device below which CPU is short.
        cpu_worth: (2,) worth of each milli-core that is short.
        fragment: worth of one device of fragmentation, counted against.
        cpu_curve: worth of all CPU of the largest node, which falls with the square of its use, so
            that CPU is used up node by node and large CPU-only jobs keep room.
        largest_cpu: milli-cores of the largest node.
        scarce: (models,) extra worth of each whole free device, by the bit of its model.
        block: (models, 3, 129) worth of a block of `BLOCKS` free devices with that much CPU, 0 to
            `CPU_STEPS`, by the bit of its model.
    """

    gaps: FloatArray
    curve: float
    cpu_wanted: FloatArray
    cpu_worth: FloatArray
    fragment: float
    cpu_curve: float
    largest_cpu: int
    scarce: FloatArray
    block: FloatArray


@compiled
def potential(cpu: int, row: IntArray, model: int, mix: Mix, terms: Terms) -> float:
    """Return the potential of a node, in devices.

    Sum over devices of gap value and curve, minus what its CPU is short of, minus fragmentation,
    plus what whole free devices are worth as a scarce model and as blocks.

    Args:
        cpu: free milli-cores.
        row: (width,) free milli of the devices.
        model: one bit, the node's device model.
        mix: kinds of jobs, for fragmentation.
        terms: the worths.
    """
    value, free, whole = 0.0, 0, 0
    for device in range(len(row)):
        left = row[device]
        free += left
        whole += left == WHOLE
        value += terms.gaps[left // GRID_MILLI] + terms.curve * (left / WHOLE) ** 2
    for k in range(2):
        short = terms.cpu_wanted[k] * free / WHOLE - cpu
        if short > 0:
            value -= terms.cpu_worth[k] * short
    value += (
        whole * scarcity(model, terms)
        + blocks(cpu, whole, model, terms)
        + terms.cpu_curve * (cpu / terms.largest_cpu) ** 2
    )
    if terms.fragment > 0:
        value -= terms.fragment * fragmentation(cpu, row, model, mix) / WHOLE
    return value


@compiled
def scarcity(model: int, terms: Terms) -> float:
    """Return the extra worth of a whole free device, of several models that of the dearest."""
    worth = 0.0
    for bit in range(len(terms.scarce)):
        if model >> bit & 1 and terms.scarce[bit] > worth:
            worth = terms.scarce[bit]
    return worth


@compiled
def blocks(cpu: int, whole: int, model: int, terms: Terms) -> float:
    """Return the worth of the blocks that fit into some whole free devices and some CPU.

    The CPU is divided evenly: each further block is worth something only to jobs that find enough
    for so many of them. Of several models that of the dearest counts.
    """
    step, value = max(cpu, 0) * CPU_STEPS // terms.largest_cpu, 0.0
    for bit in range(len(terms.block)):
        if not model >> bit & 1:
            continue
        worth = 0.0
        for k in range(len(BLOCKS)):
            for count in range(1, whole // BLOCKS[k] + 1):
                worth += terms.block[bit, k, min(step // count, CPU_STEPS)]
        value = max(value, worth)
    return value
