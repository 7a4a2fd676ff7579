"""NVML, the C library of NVIDIA's driver, called directly: the binding, and the report that `main.py gpus` prints.

Every call may hang for ever, so both users are processes of their own: the reader of this module, which `gpus.py` waits
for, and the sampler of a run. What NVML does not support, or this user may not see, is None. A device that is lost or
fails is a state of that device.
"""

import ctypes
import json
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from holdfast.farside.machine import driver_states, gpus
from holdfast.farside.system import kernel
from holdfast.farside.system.layout import READER_NAME

NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE, FUNCTION_NOT_FOUND = 4, 6, 7, 13
SILENT = (3, NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE, FUNCTION_NOT_FOUND, 25, 26)
"""There is no such value: not supported, not for this user, not found, another version, deprecated."""
LOST = (15, 16)
"""Lost, reset required: the device answers nothing more."""
COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
MPS_CLIENTS = "nvmlDeviceGetMPSComputeRunningProcesses"
_GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
_FORMS = ("_v3", "_v2")
"""The first form of these calls has a shorter struct; a driver that has nothing newer is older than any that counts."""
_SUCCESS = 0
_ROOM = 64
_UNKNOWN_MEMORY, _NO_INSTANCE = (1 << 64) - 1, 0xFFFFFFFF
_OK, _LOST_STATE, _FAILED = "ok", "lost", "failed"
_SM, _MEMORY = 1, 2

Handle = ctypes.c_void_p
Device = Dict[str, Any]


class NvmlError(Exception):
    """The library's words, and its code."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class NvmlMemory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Bus(ctypes.Structure):
    _fields_ = (("legacy", ctypes.c_char * 16), ("numbers", ctypes.c_uint * 5), ("id", ctypes.c_char * 32))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )

    @property
    def memory(self) -> Optional[int]:
        return None if self.used == _UNKNOWN_MEMORY else int(self.used)


class _Share(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("time", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class Nvml:
    """The library, started. Raises OSError where it cannot be loaded. Every method is one call of it and raises
    NvmlError; rows are valid until the next call of the same kind."""

    def __init__(self, environment: Dict[str, str]) -> None:
        self._library = _load(environment)
        self._forms: Dict[str, Tuple[str, ...]] = {}
        self._processes: Any = (_Process * _ROOM)()
        self._shares: Any = (_Share * _ROOM)()
        self._call("nvmlInit_v2")

    def count(self) -> int:
        return self.number("nvmlDeviceGetCount_v2")

    def device(self, number: int) -> Handle:
        handle: Handle = self.value(Handle, "nvmlDeviceGetHandleByIndex_v2", number)
        return handle

    def instance(self, device: Handle, number: int) -> Handle:
        """Raises NvmlError for a place with nothing in it too."""
        handle: Handle = self.value(Handle, "nvmlDeviceGetMigDeviceHandleByIndex", device, number)
        return handle

    def value(self, kind: Callable[[], Any], name: str, *arguments: Any) -> Any:
        """What the call writes where its last argument points to."""
        found = kind()
        self._call(name, *arguments, ctypes.byref(found))
        return found

    def number(self, name: str, *arguments: Any) -> int:
        return int(self.value(ctypes.c_uint, name, *arguments).value)

    def pair(self, name: str, handle: Handle) -> Tuple[int, int]:
        first, second = ctypes.c_uint(), ctypes.c_uint()
        self._call(name, handle, ctypes.byref(first), ctypes.byref(second))
        return first.value, second.value

    def text(self, name: str, *arguments: Any) -> str:
        found = ctypes.create_string_buffer(96)
        self._call(name, *arguments, found, ctypes.c_uint(len(found)))
        return found.value.decode("utf-8", "replace")

    def is_mig(self, handle: Handle) -> bool:
        return self.pair("nvmlDeviceGetMigMode", handle)[0] == 1

    def processes(self, name: str, handle: Handle) -> List[Any]:
        """Those of `COMPUTE` and its like, by the newest form that the driver has. Where they have no room, the next
        call has it."""
        for form in self._forms.get(name, _FORMS):
            count = ctypes.c_uint(len(self._processes))
            try:
                self._call(name + form, handle, ctypes.byref(count), self._processes)
            except NvmlError as error:
                if error.code == FUNCTION_NOT_FOUND and form != _FORMS[-1]:
                    continue
                self._forms[name] = (form,)
                if error.code == INSUFFICIENT_SIZE:
                    self._processes = (_Process * (count.value + _ROOM))()
                raise
            self._forms[name] = (form,)
            break
        return [self._processes[place] for place in range(count.value)]

    def shares(self, handle: Handle, since: int) -> List[Any]:
        """Computing of processes since that moment, in microseconds. No room: as above. Raises NvmlError `NOT_FOUND`
        where no process has computed."""
        count = ctypes.c_uint(len(self._shares))
        name = "nvmlDeviceGetProcessUtilization"
        try:
            self._call(name, handle, self._shares, ctypes.byref(count), ctypes.c_ulonglong(since))
        except NvmlError as error:
            if error.code == INSUFFICIENT_SIZE:
                self._shares = (_Share * (count.value + _ROOM))()
            raise
        return [self._shares[place] for place in range(count.value)]

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            code = int(getattr(self._library, name)(*arguments))
        except AttributeError:
            code = FUNCTION_NOT_FOUND
        if code != _SUCCESS:
            raise NvmlError(code, self._words(code))

    def _words(self, code: int) -> str:
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        return (self._library.nvmlErrorString(code) or b"NVML error %d" % code).decode("utf-8", "replace")


def _load(environment: Dict[str, str]) -> Any:
    """The loader's own choice first, unless one is named: it does not know every folder, and knows some better."""
    found = gpus.library(environment)
    try:
        return ctypes.CDLL(found if "HOLDFAST_NVML" in environment else gpus.LIBRARY)
    except OSError:
        if not found:
            raise
        return ctypes.CDLL(found)


def main() -> None:
    kernel.set_name(READER_NAME)
    for report in _reports(dict(os.environ)):
        os.write(1, b"\n" + json.dumps(report).encode("ascii") + b"\n")
    os._exit(0)  # unloading the library is one more chance to hang


def _reports(environment: Dict[str, str]) -> Iterator[gpus.Report]:
    """The report of this machine, last; before each device one that says it did not answer, in case the asker gives up
    then. Never raises; may never return."""
    try:
        nvml = Nvml(environment)
        asking = _Asking()
        report: gpus.Report = {"state": driver_states.TIMED_OUT, "problem": "", "code": None}
        report["driver"] = asking.value(nvml.text, "nvmlSystemGetDriverVersion")
        report["cuda"] = _version(asking.value(nvml.number, "nvmlSystemGetCudaDriverVersion"))
        report["devices"] = []
        for index in range(nvml.count()):
            yield dict(report, problem="GPU %d does not answer" % index)
            report["devices"].append(_device(nvml, index))
        yield dict(report, state=driver_states.OK)
    except NvmlError as error:
        yield gpus.failed(str(error), error.code)
    except OSError as error:
        yield gpus.failed(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a driver makes of it, it is an answer
        yield gpus.failed("%s: %s" % (type(error).__name__, error))


class _Lost(Exception):
    """The device answers nothing any more."""


class _Asking:
    """One device's calls: what there is no value for is None, any other failure is remembered."""

    def __init__(self) -> None:
        self.problem = ""

    def value(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except NvmlError as error:
            if error.code in LOST:
                raise _Lost(str(error))
            if error.code not in SILENT:
                self.problem = self.problem or str(error)
            return None


def _device(nvml: Nvml, index: int) -> Device:
    found: Device = {
        "index": index,
        "state": _OK,
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
    asking = _Asking()
    try:
        handle = asking.value(nvml.device, index)
        if handle is not None:
            _fill(found, asking, nvml, handle)
    except _Lost as error:
        return dict(found, state=_LOST_STATE, problem=str(error))
    if handle is None:
        found["state"] = _FAILED
    return dict(found, problem=asking.problem)


def _fill(found: Device, asking: _Asking, nvml: Nvml, handle: Handle) -> None:
    """Step by step, so that of a device that is lost meanwhile what was learned stays."""
    value = asking.value
    found["name"] = value(nvml.text, "nvmlDeviceGetName", handle)
    found["uuid"] = value(nvml.text, "nvmlDeviceGetUUID", handle)
    bus = value(nvml.value, _Bus, "nvmlDeviceGetPciInfo_v3", handle)
    found["pci"] = None if bus is None else _bus_id(bus.id)
    capability = value(nvml.pair, "nvmlDeviceGetCudaComputeCapability", handle)
    found["capability"] = None if capability is None else list(capability)
    found.update(_memory(value(nvml.value, NvmlMemory, "nvmlDeviceGetMemoryInfo", handle)))
    found["sm_clock"] = value(nvml.number, "nvmlDeviceGetClockInfo", handle, _SM)
    found["sm_clock_max"] = value(nvml.number, "nvmlDeviceGetMaxClockInfo", handle, _SM)
    found["memory_clock"] = value(nvml.number, "nvmlDeviceGetClockInfo", handle, _MEMORY)
    found["memory_clock_max"] = value(nvml.number, "nvmlDeviceGetMaxClockInfo", handle, _MEMORY)
    found.update(_state(asking, nvml, handle))
    found["mig"] = value(nvml.is_mig, handle)
    if found["mig"]:
        found["instances"] = _instances(asking, nvml, handle)
    found["processes"] = _processes(asking, nvml, handle)


def _bus_id(text: bytes) -> str:
    """`0000:06:00.0`, as the kernel writes it; NVML has capitals and eight digits of domain."""
    domain, _, rest = text.decode("ascii", "replace").lower().partition(":")
    return "%s:%s" % (domain[4:] if len(domain) == 8 and domain.startswith("0000") else domain, rest)


def _memory(memory: Optional[NvmlMemory]) -> Dict[str, Optional[int]]:
    names = ("total", "used", "free")
    return {"memory_" + name: None if memory is None else int(getattr(memory, name)) for name in names}


def _state(asking: _Asking, nvml: Nvml, handle: Handle) -> Device:
    """What it does now: per cent, watts, degrees."""
    rates = asking.value(nvml.value, Rates, "nvmlDeviceGetUtilizationRates", handle)
    power = asking.value(nvml.number, "nvmlDeviceGetPowerUsage", handle)
    limit = asking.value(nvml.number, "nvmlDeviceGetEnforcedPowerLimit", handle)
    return {
        "utilization": None if rates is None else int(rates.gpu),
        "memory_utilization": None if rates is None else int(rates.memory),
        "power": None if power is None else power / 1000.0,
        "power_limit": None if limit is None else limit / 1000.0,
        "temperature": asking.value(nvml.number, "nvmlDeviceGetTemperature", handle, 0),
    }


def _instances(asking: _Asking, nvml: Nvml, handle: Handle) -> List[Device]:
    found = []
    for number in range(asking.value(nvml.number, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        instance = asking.value(nvml.instance, handle, number)
        if instance is None:
            continue
        row: Device = {"index": number, "name": asking.value(nvml.text, "nvmlDeviceGetName", instance)}
        row["uuid"] = asking.value(nvml.text, "nvmlDeviceGetUUID", instance)
        row["gpu_instance"] = asking.value(nvml.number, "nvmlDeviceGetGpuInstanceId", instance)
        row.update(_memory(asking.value(nvml.value, NvmlMemory, "nvmlDeviceGetMemoryInfo", instance)))
        found.append(row)
    return found


def _processes(asking: _Asking, nvml: Nvml, handle: Handle) -> Optional[List[Device]]:
    """None where the driver does not say."""
    found: Optional[List[Device]] = None
    for kind, name in (("compute", COMPUTE), ("mps", MPS_CLIENTS), ("graphics", _GRAPHICS)):
        rows = asking.value(_all_processes, nvml, name, handle)
        if rows is None or (kind == "mps" and found is None):
            continue  # clients of MPS say nothing of other processes
        known = {each["pid"] for each in found or [] if kind == "mps"}
        found = (found or []) + [_process(row, kind) for row in rows if row.pid not in known]
    return found


def _all_processes(nvml: Nvml, name: str, handle: Handle) -> List[Any]:
    for _ in range(3):  # while it is asked, more may come than there is room for
        try:
            return nvml.processes(name, handle)
        except NvmlError as error:
            if error.code != INSUFFICIENT_SIZE:
                raise
    return nvml.processes(name, handle)


def _process(row: Any, kind: str) -> Device:
    """`instance` is the MIG instance that it is on, by the driver's own number."""
    instance = None if row.gpu_instance == _NO_INSTANCE else int(row.gpu_instance)
    return {"pid": row.pid, "memory": row.memory, "kind": kind, "instance": instance}


def _version(number: Optional[int]) -> Optional[str]:
    """`12.2` of 12020."""
    return None if number is None else "%d.%d" % (number // 1000, number % 1000 // 10)
