"""NVIDIA devices of this machine, by NVML through `pynvml`.

How a call is bounded: a driver whose GPU fell off the bus can block inside the kernel for minutes,
and nothing in this process can interrupt that. So one thread asks and the caller waits `timeout_s`
at most; while the thread is stuck nobody starts a second one, and the devices known before are
reported as unknown.

When the library is opened: once, kept open between calls, because opening it on a machine without
the persistence daemon wakes and initialises every GPU (seconds each). It is closed and opened again
after a call to which no device answered, and every `REOPEN_CALLS` calls to notice devices that
came or went. A device that was there and is not listed any more is reported as lost: somebody's
job may still hold it. MIG slices of a lost GPU are lost with it; slices that an operator removed
from a healthy one are simply gone.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telemetry.sense.base import DeviceReading
from telemetry.sense.nvml_links import link_groups, pci_addresses
from telemetry.sense.pci import nearest_cards

if TYPE_CHECKING:
    from types import ModuleType

MIB: Final = 1024 * 1024
TIMEOUT_S: Final = 3.0
REOPEN_CALLS: Final = 60
NODE_WORDS: Final = 16  # of 64 bits each: 1024 NUMA nodes, the most that Linux is built for
NO_DRIVER: Final = "no NVIDIA driver"

Devices = tuple[DeviceReading, ...]


@dataclass(slots=True)
class _Answer:
    """What the thread brings back; `done` is set last."""

    done: threading.Event
    devices: Devices = ()
    note: str = ""
    error: BaseException | None = None


class NvmlReader:
    """Reads the NVIDIA devices of one machine, again and again.

    Args:
        node: name of the node, for the uid of a device that never told its own.
        timeout_s: a call returns after this long at the latest.
        root: where the machine's file system begins; sysfs tells the network cards.
    """

    def __init__(self, node: str, *, timeout_s: float = TIMEOUT_S, root: Path = Path("/")) -> None:
        self._session = _Session(node, root)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._running: _Answer | None = None
        self._known: Devices = ()

    def read(self) -> tuple[Devices, str]:
        """Return the devices, and why nothing more is known ("" where all is).

        No driver is a note, not an error. Safe to call from several threads.
        """
        with self._lock:
            stuck = self._running is not None and not self._running.done.is_set()
            answer = self._running if stuck and self._running else self._start()
            if not answer.done.wait(self._timeout_s):
                self._running = answer
                note = f"the NVIDIA driver did not answer within {self._timeout_s:g} s"
                return _unknown(self._known, note), note
            self._running = None
        if answer.error is not None:
            raise answer.error
        devices = _with_missing(answer.devices, self._known, answer.note)
        self._known = devices
        return devices, answer.note

    def _start(self) -> _Answer:
        answer = _Answer(threading.Event())

        def ask() -> None:
            try:
                answer.devices, answer.note = self._session.read()
            except BaseException as exc:  # noqa: BLE001 carried to the caller, who raises it
                answer.error = exc
            finally:
                answer.done.set()

        threading.Thread(target=ask, name="nvml", daemon=True).start()
        return answer


class _Session:
    """An open library. Only ever used by one thread at a time."""

    def __init__(self, node: str, root: Path) -> None:
        self._node = node
        self._root = root
        self._calls = 0
        self._open = False
        self._links: dict[int, int] = {}
        self._nics: dict[int, str] = {}

    def read(self) -> tuple[Devices, str]:
        try:
            import pynvml  # noqa: PLC0415 asked for only here
        except ImportError:
            return (), "the package nvidia-ml-py is not installed"
        self._calls += 1
        if self._calls % REOPEN_CALLS == 0:
            self._close(pynvml)
        try:
            self._ensure_open(pynvml)
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as exc:
            self._close(pynvml)
            return (), _why_closed(pynvml, exc)
        devices = [device for index in range(count) for device in self._device(pynvml, index)]
        if devices and all(device.health in {"lost", "unknown"} for device in devices):
            self._close(pynvml)
        return tuple(devices), ""

    def _ensure_open(self, nvml: "ModuleType") -> None:
        if not self._open:
            nvml.nvmlInit()
            self._open = True
            addresses = pci_addresses(nvml)
            self._links = link_groups(nvml, addresses)
            self._nics = nearest_cards(self._root, addresses)

    def _close(self, nvml: "ModuleType") -> None:
        if self._open:
            self._open = False
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # the driver is gone already, and with it what there was to close

    def _device(self, nvml: "ModuleType", index: int) -> list[DeviceReading]:
        """Return the device and its MIG slices; a lost one as far as it is known."""
        known = DeviceReading(
            uid=f"{self._node}/nvidia/{index}",
            index=index,
            vendor="nvidia",
            model="",
            memory_mib=None,
            link_group=self._links.get(index, -1),
            nic=self._nics.get(index, ""),
        )
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            known = replace(known, uid=_text(nvml.nvmlDeviceGetUUID(handle)))
            known = replace(
                known, model=_text(_ask(nvml, nvml.nvmlDeviceGetName, handle) or "unknown")
            )
            device = _measured(nvml, handle, known)
            return [device, *_slices(nvml, handle, device)]
        except nvml.NVMLError as exc:
            return [replace(known, health=_health_of(nvml, exc), health_note=str(exc))]


def _measured(nvml: "ModuleType", handle: Any, known: DeviceReading) -> DeviceReading:
    """Return the device or MIG slice as it is now; what the driver can't say is None."""
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    rates = _ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    milliwatts = _ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
    celsius = _ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    health, note = _memory_health(nvml, handle)
    return replace(
        known,
        memory_mib=None if memory is None else int(memory.total) // MIB,
        health=health,
        health_note=note,
        utilised_frac=None if rates is None else min(int(rates.gpu) / 100, 1.0),
        memory_used_mib=None if memory is None else int(memory.used) // MIB,
        power_w=None if milliwatts is None else milliwatts / 1000,
        temperature_c=None if celsius is None else float(celsius),
        process_ids=_processes(nvml, handle),
        numa_node=_numa_node(nvml, handle, known.numa_node),
        throttled=known.throttled or _throttled(nvml, handle),
    )


def _numa_node(nvml: "ModuleType", handle: Any, otherwise: int) -> int:
    """Return the NUMA node nearest to a device; `otherwise` where that is none or several."""
    scope = nvml.NVML_AFFINITY_SCOPE_NODE
    words = _ask(nvml, nvml.nvmlDeviceGetMemoryAffinity, handle, NODE_WORDS, scope)
    near = sum(int(word) << (64 * place) for place, word in enumerate(words or ()))
    return near.bit_length() - 1 if near.bit_count() == 1 else otherwise


def _throttled(nvml: "ModuleType", handle: Any) -> bool:
    """Return whether the hardware slows the clocks down for heat, by a half or more.

    What software does before that, to stay below a temperature, is how devices are meant to run.
    """
    reasons = _ask(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return bool((reasons or 0) & nvml.nvmlClocksThrottleReasonHwThermalSlowdown)


def _memory_health(nvml: "ModuleType", handle: Any) -> tuple[str, str]:
    """Return health and why: unhealthy where worn-out memory could not be replaced."""
    rows = _ask(nvml, nvml.nvmlDeviceGetRemappedRows, handle)
    if rows is None:
        return "healthy", ""
    _, _, pending, failed = rows
    if failed:
        return "unhealthy", "remapping of worn-out memory rows failed"
    return "healthy", "a reset is needed to remap memory rows" if pending else ""


def _health_of(nvml: "ModuleType", exc: Any) -> str:
    """Return what an error says of the device that gave it."""
    if exc.value == nvml.NVML_ERROR_GPU_IS_LOST:
        return "lost"
    return "unhealthy" if exc.value == nvml.NVML_ERROR_RESET_REQUIRED else "unknown"


def _processes(nvml: "ModuleType", handle: Any) -> tuple[int, ...]:
    for name in (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
    ):
        found = _ask(nvml, getattr(nvml, name), handle)
        if found is not None:
            return tuple(sorted({int(process.pid) for process in found}))
    return ()


def _slices(nvml: "ModuleType", handle: Any, parent: DeviceReading) -> list[DeviceReading]:
    """Return the MIG devices of a GPU, none where MIG is off or the driver does not know it."""
    mode = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    if not mode or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return []
    found = []
    for number in range(_ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        mig = _ask(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        uid = None if mig is None else _ask(nvml, nvml.nvmlDeviceGetUUID, mig)
        if uid is None:
            continue
        known = DeviceReading(
            uid=_text(uid),
            index=number,
            vendor=parent.vendor,
            model=parent.model,
            memory_mib=None,
            mig_profile=_profile(nvml, mig),
            parent_uid=parent.uid,
            link_group=parent.link_group,
            numa_node=parent.numa_node,
            nic=parent.nic,
            throttled=parent.throttled,
        )
        found.append(_measured(nvml, mig, known))
    return found


def _profile(nvml: "ModuleType", mig: Any) -> str:
    """Return such as `1g.10gb`: from the slice's name, by its attributes where that has none."""
    name = _text(_ask(nvml, nvml.nvmlDeviceGetName, mig) or "")
    _, found, profile = name.partition(" MIG ")
    if found:
        return profile.strip()
    attributes = _ask(nvml, nvml.nvmlDeviceGetAttributes, mig)
    if attributes is None:
        return "unknown"
    gib = -(-int(attributes.memorySizeMB) // 1024)
    return f"{attributes.gpuInstanceSliceCount}g.{gib}gb"


def _ask(nvml: "ModuleType", function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the driver says, None where it can't (old driver, not supported, odd bytes).

    Raises:
        NVMLError: the device is lost or needs a reset; nothing else of it can be trusted.
    """
    try:
        return function(*arguments)
    except UnicodeDecodeError:
        return None
    except nvml.NVMLError as exc:
        if exc.value in {nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED}:
            raise
        return None


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _why_closed(nvml: "ModuleType", exc: Any) -> str:
    absent = (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
    return NO_DRIVER if exc.value in absent else f"the NVIDIA driver can't be used: {exc}"


def _unknown(devices: Sequence[DeviceReading], note: str) -> Devices:
    """Return the devices as known before, with nothing measured."""
    return tuple(
        replace(
            device,
            health="unknown",
            health_note=note,
            utilised_frac=None,
            memory_used_mib=None,
            power_w=None,
            temperature_c=None,
            process_ids=(),
            throttled=False,
        )
        for device in devices
    )


def _with_missing(now: Devices, before: Devices, note: str) -> Devices:
    """Return the devices of now, and those of before that should be there and are not."""
    if note:
        return _unknown(before, note)
    told = _remembered(now, before)
    seen = {device.uid for device in told}
    ill = {device.uid: device for device in told if device.health in {"lost", "unknown"}}
    missing = []
    for device in before:
        if device.uid in seen or not device.model:
            continue
        if not device.parent_uid:
            gone = _unknown([device], "the driver does not list it any more")[0]
            missing.append(replace(gone, health="lost"))
        elif device.parent_uid in ill:
            parent = ill[device.parent_uid]
            gone = _unknown([device], parent.health_note)[0]
            missing.append(replace(gone, health=parent.health))
    return (*told, *missing)


def _remembered(now: Devices, before: Devices) -> Devices:
    """Return the devices of now; one that can't tell who it is gets what was known of it before."""
    seen = {device.uid for device in now}
    by_uid = {device.uid: device for device in before if not device.parent_uid}
    by_index = {d.index: d for d in reversed(by_uid.values()) if d.uid not in seen}

    def remember(device: DeviceReading) -> DeviceReading:
        old = by_uid.get(device.uid) or by_index.get(device.index)
        if device.model or old is None:
            return device
        return replace(_unknown([old], device.health_note)[0], health=device.health)

    return tuple(remember(device) for device in now)
