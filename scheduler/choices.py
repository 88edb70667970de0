"""Kinds and states of jobs, and the only moves between states."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.topology import Level
from scheduler.decide.strategies.base import STRATEGIES


class JobKind(TextChoices):
    """What a job is for."""

    TRAINING = "training", _("training")
    INFERENCE = "inference", _("inference")
    BATCH = "batch", _("batch")
    NOTEBOOK = "notebook", _("notebook")


class TopologyLevel(TextChoices):
    """How near to each other all replicas of a job are to be."""

    LINK = Level.LINK, _("one NVLink or HCCS island")
    NIC = Level.NIC, _("one network card's reach")
    NUMA = Level.NUMA, _("one NUMA node")
    NODE = Level.NODE, _("one node")
    RACK = Level.RACK, _("one rack")
    BLOCK = Level.BLOCK, _("one switch block")


class PlacementWish(TextChoices):
    """How the replicas of a job lie on nodes."""

    PACK = "pack", _("packed on few nodes")
    SPREAD = "spread", _("spread over nodes")
    ONE_PER_NODE = ONE_PER_NODE, _("one on a node")


class PlacementScore(TextChoices):
    """What chooses among the places that a job fits in; the keys of `decide.scoring.SCORES`."""

    PACK = "pack", _("pack")
    SPREAD = "spread", _("spread")
    DOTPROD = "dotprod", _("dot product")
    GPUPACKING = "gpupacking", _("device packing")
    GPUCLUSTERING = "gpuclustering", _("device clustering")
    FGD = "fgd", _("least fragmentation (FGD)")
    PRICES = "prices", _("learnt prices")


class Solver(TextChoices):
    """What solves the model of the optimising strategy; the keys of `core.policy.SOLVERS`."""

    HIGHS = "highs", _("HiGHS")
    CBC = "cbc", _("CBC")


STRATEGY_NAMES = tuple(sorted(STRATEGIES))
"""All that a cluster may choose for the cycle, for a kind of job and for the shadow."""


class JobState(TextChoices):
    """Where a job stands."""

    AWAITING_APPROVAL = "awaiting_approval", _("awaiting approval")
    QUEUED = "queued", _("queued")
    STARTING = "starting", _("starting")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    TIMED_OUT = "timed_out", _("timed out")


_S = JobState
_ENDS = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.TIMED_OUT})

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    _S.AWAITING_APPROVAL: frozenset({_S.QUEUED, _S.CANCELLED}),
    _S.QUEUED: frozenset({_S.STARTING, _S.CANCELLED, _S.FAILED}),
    _S.STARTING: _ENDS | {_S.RUNNING, _S.QUEUED},
    _S.RUNNING: _ENDS | {_S.QUEUED},
    _S.SUCCEEDED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.TIMED_OUT: frozenset(),
}

FINAL_STATES = _ENDS
WAITING_STATES = frozenset({_S.AWAITING_APPROVAL, _S.QUEUED})
HOLDING_STATES = frozenset({_S.STARTING, _S.RUNNING})


class Verb(TextChoices):
    """What an intent asks of an executor."""

    BIND = "bind", _("start")
    EVICT = "evict", _("stop")


class IntentState(TextChoices):
    """Whether the executor has been told."""

    PENDING = "pending", _("pending")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
