"""Where the GPUs of a node are on the PCI bus, and which reach each other by NVLink."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

LINKS: Final = 18
"""NVML_NVLINK_MAX_LINKS of nvml.h."""


def pci_addresses(nvml: ModuleType) -> dict[int, str]:
    """Return GPU index -> PCI address, for the GPUs that tell it.

    Args:
        nvml: the `pynvml` module, initialised.
    """
    own: dict[int, str] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            own[index] = _bus(nvml.nvmlDeviceGetPciInfo(handle))
        except nvml.NVMLError:
            continue
    return own


def link_groups(nvml: ModuleType, own: Mapping[int, str]) -> dict[int, int]:
    """Return GPU index -> NVLink island, for the GPUs that have an active link.

    Args:
        nvml: the `pynvml` module, initialised.
        own: GPU index -> its PCI address.
    """
    return islands(own, {index: _remotes(nvml, index) for index in own})


def islands(own: Mapping[int, str], remotes: Mapping[int, frozenset[str]]) -> dict[int, int]:
    """Return GPU index -> number of its island; islands count from 0 by their smallest index.

    Two GPUs are in one island when one's link ends at the other, or links of both end at the same
    NVSwitch. A GPU without links is in none.

    Args:
        own: GPU index -> its PCI address.
        remotes: GPU index -> PCI addresses at the far ends of its active links.
    """
    reach = {index: set(remotes[index]) | {own[index]} for index in own if remotes.get(index)}
    groups: list[tuple[set[int], set[str]]] = []
    for index, ends in sorted(reach.items()):
        members, addresses = {index}, set(ends)
        apart = []
        for group in groups:
            if group[1] & addresses:
                members |= group[0]
                addresses |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (members, addresses)]
    ordered = sorted((members for members, _ in groups), key=min)
    return {index: number for number, members in enumerate(ordered) for index in members}


def _remotes(nvml: ModuleType, index: int) -> frozenset[str]:
    found = set()
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return frozenset()
    for link in range(LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, link) == nvml.NVML_FEATURE_ENABLED:
                found.add(_bus(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link)))
        except nvml.NVMLError as exc:
            if exc.value == nvml.NVML_ERROR_INVALID_ARGUMENT:
                continue
            break
    return frozenset(found)


def _bus(pci: Any) -> str:
    address = pci.busId
    return (address.decode("ascii", "replace") if isinstance(address, bytes) else address).lower()
