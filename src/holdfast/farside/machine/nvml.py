"""Reads the GPUs through NVML, in a process that may hang: `main.py gpus` prints what `gpus.py` waits for.

What NVML does not support, or this user may not see, is None. A device that is lost or fails is a state of that device.
"""

import importlib
import json
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional

from holdfast.farside import kernel
from holdfast.farside.layout import READER_NAME, SHIPPED
from holdfast.farside.machine import gpus

OK, LOST, FAILED = "ok", "lost", "failed"
_SILENT = (3, 4, 6, 13, 25, 26)
"""Not supported, no permission, not found, function not found, version mismatch, deprecated: there is no such value."""
_LOST = (15, 16)
"""Lost, reset required: nothing more is to be had from this device."""
_SM, _MEMORY = 1, 2
_CORE = 0
_NO_INSTANCE = 0xFFFFFFFF

Device = Dict[str, Any]


def main() -> None:
    kernel.set_name(READER_NAME)
    for report in reports(dict(os.environ)):
        os.write(1, b"\n" + json.dumps(report).encode("ascii") + b"\n")
    os._exit(0)  # unloading the library is one more chance to hang


def reports(environment: Dict[str, str]) -> Iterator[gpus.Report]:
    """The report of this machine, last; before each device one that says it did not answer, for whoever gives up
    then. Never raises; may never return."""
    try:
        nvml = _load(environment)
    except (ImportError, OSError) as error:
        yield gpus.failed(str(error))
        return
    try:
        nvml.nvmlInit()
        asking = _Asking(nvml)
        report: gpus.Report = {"state": gpus.TIMED_OUT, "problem": "", "code": None}
        report["driver"] = asking.value(nvml.nvmlSystemGetDriverVersion)
        report["cuda"] = _version(asking.value(nvml.nvmlSystemGetCudaDriverVersion))
        report["devices"] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            yield dict(report, problem="GPU %d does not answer" % index)
            report["devices"].append(_device(nvml, index))
        yield dict(report, state=gpus.OK)
    except nvml.NVMLError as error:
        yield gpus.failed(str(error), error.value)
    except Exception as error:  # noqa: BLE001 - whatever a driver makes of it, it is an answer
        yield gpus.failed("%s: %s" % (type(error).__name__, error))


def _load(environment: Dict[str, str]) -> Any:
    """pynvml, which is shipped beside the far side, with the library that was found. Its own search is the loader's,
    which does not know every folder."""
    sys.path.append(os.path.join(SHIPPED, "nvml"))
    nvml = importlib.import_module("pynvml")
    import ctypes

    found = gpus.library(environment)
    try:
        setattr(nvml, "nvmlLib", ctypes.CDLL(found if "HOLDFAST_NVML" in environment else gpus.LIBRARY))  # noqa: B010
    except OSError:
        if not found:
            raise
        setattr(nvml, "nvmlLib", ctypes.CDLL(found))  # noqa: B010 - mypy knows no module behind this name
    return nvml


class _Lost(Exception):
    """The device answers nothing any more."""


class _Asking:
    """One device's calls: what there is no value for is None, any other failure is remembered."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.problem = ""

    def value(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            if error.value in _LOST:
                raise _Lost(str(error))
            if error.value not in _SILENT:
                self.problem = self.problem or str(error)
            return None


def _device(nvml: Any, index: int) -> Device:
    found: Device = {
        "index": index,
        "state": OK,
        "problem": "",
        "name": None,
        "uuid": None,
        "capability": None,
        "memory_total": None,
        "memory_used": None,
        "memory_free": None,
        "sm_clock": None,
        "sm_clock_max": None,
        "memory_clock": None,
        "memory_clock_max": None,
        "pci": None,
        "utilization": None,
        "memory_utilization": None,
        "power": None,
        "power_limit": None,
        "temperature": None,
        "mig": None,
        "instances": [],
        "processes": None,
    }
    asking = _Asking(nvml)
    try:
        handle = asking.value(nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None:
            _fill(found, asking, nvml, handle)
    except _Lost as error:
        return dict(found, state=LOST, problem=str(error))
    if handle is None:
        found["state"] = FAILED
    return dict(found, problem=asking.problem)


def _fill(found: Device, asking: _Asking, nvml: Any, handle: Any) -> None:
    """Step by step, so that of a device that is lost meanwhile what was learned stays."""
    value = asking.value
    found["name"] = value(nvml.nvmlDeviceGetName, handle)
    found["uuid"] = value(nvml.nvmlDeviceGetUUID, handle)
    pci = value(nvml.nvmlDeviceGetPciInfo, handle)
    found["pci"] = None if pci is None else _bus_id(pci.busId)
    capability = value(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    found["capability"] = None if capability is None else list(capability)
    found.update(_memory(value(nvml.nvmlDeviceGetMemoryInfo, handle)))
    found["sm_clock"] = value(nvml.nvmlDeviceGetClockInfo, handle, _SM)
    found["sm_clock_max"] = value(nvml.nvmlDeviceGetMaxClockInfo, handle, _SM)
    found["memory_clock"] = value(nvml.nvmlDeviceGetClockInfo, handle, _MEMORY)
    found["memory_clock_max"] = value(nvml.nvmlDeviceGetMaxClockInfo, handle, _MEMORY)
    found.update(_state(asking, nvml, handle))
    mode = value(nvml.nvmlDeviceGetMigMode, handle)
    found["mig"] = None if mode is None else bool(mode[0])
    if found["mig"]:
        found["instances"] = _instances(asking, nvml, handle)
    found["processes"] = _processes(asking, nvml, handle)


def _bus_id(text: Any) -> str:
    """`0000:06:00.0`, as the kernel writes it; NVML has capitals and eight digits of domain."""
    shown = (text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)).lower()
    domain, _, rest = shown.partition(":")
    return "%s:%s" % (domain[4:] if len(domain) == 8 and domain.startswith("0000") else domain, rest)


def _memory(memory: Any) -> Dict[str, Optional[int]]:
    names = ("total", "used", "free")
    return {"memory_" + name: None if memory is None else int(getattr(memory, name)) for name in names}


def _state(asking: _Asking, nvml: Any, handle: Any) -> Device:
    """What it does now: per cent, watts, degrees."""
    rates = asking.value(nvml.nvmlDeviceGetUtilizationRates, handle)
    power = asking.value(nvml.nvmlDeviceGetPowerUsage, handle)
    limit = asking.value(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    return {
        "utilization": None if rates is None else int(rates.gpu),
        "memory_utilization": None if rates is None else int(rates.memory),
        "power": None if power is None else power / 1000.0,
        "power_limit": None if limit is None else limit / 1000.0,
        "temperature": asking.value(nvml.nvmlDeviceGetTemperature, handle, _CORE),
    }


def _instances(asking: _Asking, nvml: Any, handle: Any) -> List[Device]:
    found = []
    for number in range(asking.value(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        instance = asking.value(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if instance is None:
            continue  # a place with nothing in it
        row: Device = {"index": number, "name": asking.value(nvml.nvmlDeviceGetName, instance)}
        row["uuid"] = asking.value(nvml.nvmlDeviceGetUUID, instance)
        row["gpu_instance"] = asking.value(nvml.nvmlDeviceGetGpuInstanceId, instance)
        row.update(_memory(asking.value(nvml.nvmlDeviceGetMemoryInfo, instance)))
        found.append(row)
    return found


def _processes(asking: _Asking, nvml: Any, handle: Any) -> Optional[List[Device]]:
    """None where nobody can say. An older driver has the second form of the call only."""
    found: Optional[List[Device]] = None
    for kind, calls in (
        ("compute", ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")),
        ("mps", ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2")),
        ("graphics", ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")),
    ):
        rows = None
        for name in calls:
            call = getattr(nvml, name, None)
            if rows is None and call is not None:
                rows = asking.value(call, handle)
        if rows is None or (kind == "mps" and found is None):
            continue  # who shares a device by MPS says nothing of whoever does not
        known = {each["pid"] for each in found or [] if kind == "mps"}
        found = (found or []) + [_process(row, kind) for row in rows if row.pid not in known]
    return found


def _process(row: Any, kind: str) -> Device:
    """`instance` is the MIG instance that it is on, by the driver's own number."""
    where = getattr(row, "gpuInstanceId", None)
    instance = None if where in (None, _NO_INSTANCE) else int(where)
    return {"pid": row.pid, "memory": row.usedGpuMemory, "kind": kind, "instance": instance}


def _version(number: Optional[int]) -> Optional[str]:
    """`12.2` of 12020."""
    return None if number is None else "%d.%d" % (number // 1000, number % 1000 // 10)
