"""Where nodes and devices stand to each other, and how near a job wants its replicas.

Levels from near to far: the NVLink or HCCS island, the devices nearest to one network card, the
NUMA node, the node, the rack (one leaf switch) and the block (the racks below one spine). A
node's rack and block are read from its labels.

Source: Kueue, Topology Aware Scheduling (required and preferred levels, smallest domain that fits);
NVIDIA Topograph, node labels (leaf and spine, tier 0 and tier 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The levels, from near to far."""

    LINK = "link"
    NIC = "nic"
    NUMA = "numa"
    NODE = "node"
    RACK = "rack"
    BLOCK = "block"


WITHIN_NODE = frozenset({Level.LINK, Level.NIC, Level.NUMA})
"""Levels whose domains are parts of a node, made of devices."""


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """All replicas of a job in one domain of a level.

    Attributes:
        level: of the domain.
        required: the job waits until one domain holds it; else the nearest level that does, and
            the fewest domains where none does.
    """

    level: Level
    required: bool = True


RACK_LABELS = (
    "cloud.provider.com/topology-rack",
    "fabric.topograph.run/tier-0",
    "network.topology.nvidia.com/leaf",
)
"""Labels that name a node's rack or leaf switch; the first that is there counts."""

BLOCK_LABELS = (
    "cloud.provider.com/topology-block",
    "fabric.topograph.run/tier-1",
    "network.topology.nvidia.com/spine",
    "topology.kubernetes.io/zone",
)
"""Labels that name a node's block or spine switch; the zone where nothing nearer is known."""


def domain_of(labels: Mapping[str, str], level: Level) -> tuple[str, ...]:
    """Return the domain of a node's labels: (block,) or (block, rack); () where they name none.

    A rack's name counts within its block: two blocks may both have a rack 1.

    Args:
        labels: of the node.
        level: rack or block.
    """
    block = _first(labels, BLOCK_LABELS)
    if level is Level.BLOCK:
        return (block,) if block else ()
    rack = _first(labels, RACK_LABELS)
    return (block, rack) if rack else ()


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")
