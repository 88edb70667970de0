"""What is free while time passes: arrays that change in place, frozen as copies for each cycle."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from scheduler.core.errors import InvalidPlanError
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import Fleet, ReplicaPlacement


class Holdings:
    """The free amounts of a fleet, and which of its nodes may take work.

    A frozen fleet shares every array that has not changed since the last one, so that a cycle
    costs a copy of four arrays at most.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._frozen = fleet
        self._index = {name: n for n, name in enumerate(fleet.node_names)}
        self._cpu = np.array(fleet.node_cpu_free_milli, dtype=np.int64)
        self._memory = np.array(fleet.node_memory_free_mib, dtype=np.int64)
        self._milli = np.array(fleet.device_free_milli, dtype=np.int64)
        self._device_memory = np.array(fleet.device_free_memory_mib, dtype=np.int64)
        self._node_of: list[int] = fleet.device_node.tolist()
        self._changed = False

    def flavor(self, replicas: Sequence[ReplicaPlacement]) -> str:
        """Return the flavor that a job holds, "" for none."""
        return self._frozen.flavor_held(replicas)

    def take(self, shape: ReplicaShape, replicas: Sequence[ReplicaPlacement], uid: str) -> None:
        """Hold some replicas.

        Raises:
            InvalidPlanError: there is less free than that, or no such node or device.
        """
        self.check(replicas)
        least = 0
        for place in replicas:
            node, devices = place.node, place.devices
            self._cpu[node] -= shape.cpu_milli
            self._memory[node] -= shape.memory_mib
            least = min(least, self._cpu[node], self._memory[node])
            for device in devices:
                self._milli[device] -= place.gpu_milli
                self._device_memory[device] -= place.gpu_memory_mib
                least = min(least, self._milli[device], self._device_memory[device])
        self._changed = True
        if least < 0:
            raise InvalidPlanError(f"job {uid!r} was placed where less is free than it takes")

    def check(self, replicas: Sequence[ReplicaPlacement]) -> None:
        """Look whether all nodes are there, and each has the devices that are placed on it.

        Raises:
            InvalidPlanError: one is not.
        """
        nodes, node_of = len(self._cpu), self._node_of
        for place in replicas:
            node = place.node
            if not 0 <= node < nodes:
                raise InvalidPlanError(f"there is no node {node}")
            for device in place.devices:
                if not 0 <= device < len(node_of) or node_of[device] != node:
                    raise InvalidPlanError(f"node {node} has no device {device}")

    def room_for(self, shape: ReplicaShape, replicas: Sequence[ReplicaPlacement]) -> bool:
        """Return whether some replicas could be held now, on nodes that may take work."""
        ready = self._frozen.node_ready
        if not all(ready[place.node] for place in replicas):
            return False
        try:
            self.take(shape, replicas, "")
        except InvalidPlanError:
            return False
        finally:
            self.give_back(shape, replicas)
        return True

    def give_back(self, shape: ReplicaShape, replicas: Sequence[ReplicaPlacement]) -> None:
        """Free some replicas."""
        for place in replicas:
            self._cpu[place.node] += shape.cpu_milli
            self._memory[place.node] += shape.memory_mib
            for device in place.devices:
                self._milli[device] += place.gpu_milli
                self._device_memory[device] += place.gpu_memory_mib
        self._changed = True

    def mark(self, name: str, note: str) -> int:
        """Let a node take work ("") or not (why), and return its index."""
        node, fleet = self._index[name], self._frozen
        ready, notes = fleet.node_ready.copy(), list(fleet.node_note)
        ready[node], notes[node] = note == "", note
        self._frozen = replace(fleet, node_ready=_frozen(ready), node_note=tuple(notes))
        return node

    def freeze(self) -> Fleet:
        """Return the fleet as it is now; it does not change any more."""
        if self._changed:
            self._frozen = replace(
                self._frozen,
                node_cpu_free_milli=_frozen(self._cpu.copy()),
                node_memory_free_mib=_frozen(self._memory.copy()),
                device_free_milli=_frozen(self._milli.copy()),
                device_free_memory_mib=_frozen(self._device_memory.copy()),
            )
            self._changed = False
        return self._frozen

    def capacity(self) -> Mapping[str, int]:
        """Return flavor -> thousandths on nodes that may take work, healthy devices only."""
        fleet = self._frozen
        usable = fleet.device_healthy & fleet.node_ready[fleet.device_node]
        counts = np.bincount(fleet.device_flavor[usable], minlength=len(fleet.flavors))
        milli = {f.name: WHOLE_MILLI * int(n) for f, n in zip(fleet.flavors, counts, strict=True)}
        return milli | {CPU_FLAVOR: int(fleet.node_cpu_milli[fleet.node_ready].sum())}


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.setflags(write=False)
    return array
