"""Watches GPUs through NVML: its C library, called directly, with at most four calls for each look at a device.

Who computes and how much is asked every time; memory, power, temperature and the clients of MPS in turn. Buffers and
handles are kept: a list that outgrows its buffer costs one more call, and the one in turn is left out for it.
"""

import ctypes
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from holdfast.farside.gpu.watching.samples import Watched
from holdfast.farside.gpu.watching.source import Look, Lost, Source, Unusable
from holdfast.farside.machine import gpus

CALLS = 4
_SUCCESS, _NO_PERMISSION, _NOT_FOUND, _INSUFFICIENT_SIZE, _FUNCTION_NOT_FOUND = 0, 4, 6, 7, 13
_SILENT = (3, _NO_PERMISSION, _NOT_FOUND, _INSUFFICIENT_SIZE, _FUNCTION_NOT_FOUND, 25, 26)
"""There is no such value: not supported, not for this user, not found, another version, deprecated."""
_LOST = (15, 16)
_UNKNOWN_MEMORY = (1 << 64) - 1
_ROOM = 64
_SHORTEST = 1000000
"""Microseconds that are looked back at least: the driver counts about once a second, and asked twice at once it would
say that nobody computes."""
_MEMORY, _POWER, _TEMPERATURE, _MPS = "memory", "power", "temperature", "mps"
_TURNS = (_POWER, _TEMPERATURE, _MEMORY, _MPS)

_COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
_MPS_CLIENTS = "nvmlDeviceGetMPSComputeRunningProcesses"
_FORMS = ("_v3", "_v2")
"""The first form of these calls has a shorter struct; a driver that has nothing newer is older than any that counts."""


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Share(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("time", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Device:
    """What is kept of a device between looks."""

    def __init__(self, number: int) -> None:
        self.watched = Watched(number, "", "", None, False)
        self.handle: Optional[ctypes.c_void_p] = None
        self.instances: List[ctypes.c_void_p] = []
        self.on_instance: Dict[int, Mapping[int, Optional[int]]] = {}
        self.memory: Optional[int] = None
        self.clients: Mapping[int, Optional[int]] = {}
        self.is_closed = False
        self.turn = self.next_instance = 0
        self.since = 0


class _Asking:
    """The calls of one look: their codes, and so how many are left."""

    def __init__(self) -> None:
        self.codes: List[int] = []

    @property
    def left(self) -> int:
        return CALLS - len(self.codes)

    def note(self, code: int) -> int:
        self.codes.append(code)
        return code


class NvmlSource(Source):
    def __init__(self, environment: Dict[str, str]) -> None:
        self._environment = environment
        self._devices: Dict[int, _Device] = {}
        self._library: Any = None
        self._forms: Dict[str, Tuple[str, ...]] = {}
        self._processes: Any = (_Process * _ROOM)()
        self._shares: Any = (_Share * _ROOM)()

    def open(self) -> None:
        try:
            self._library = _load(self._environment)
        except OSError as error:
            raise Unusable(str(error))
        code, count = self._call("nvmlInit_v2"), ctypes.c_uint()
        if code == _SUCCESS:
            code = self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        if code != _SUCCESS:
            raise Unusable(self._text(code))
        for number in range(count.value):
            device = _Device(number)
            if self._identify(device) != _NO_PERMISSION:  # then it is nobody's here
                self._devices[number] = device

    def devices(self) -> Tuple[Watched, ...]:
        return tuple(each.watched for each in self._devices.values())

    def look(self, number: int, is_asked: bool) -> Look:
        device, asking = self._devices[number], _Asking()
        if device.handle is None:
            code = self._identify(device)
            if code != _SUCCESS:
                raise Lost(self._text(code))
            return Look(memory=device.memory)  # that were calls enough for now
        if device.watched.mig:
            processes = self._on_instances(device, asking)
            found = Look(processes=processes)
        else:
            processes = self._running(_COMPUTE, device.handle, asking)
            shares = self._computing(device, asking)
            found = Look(processes=processes, shares=shares, utilisation=self._utilisation(device, asking))
        found = self._in_turn(device, asking, found, is_asked)
        self._check(device, asking)
        if found.processes is None or not device.clients:
            return found
        return found._replace(processes=_together([device.clients, found.processes]))

    def _identify(self, device: _Device) -> int:
        """At the start, and again of one that was lost. Costs more calls than a look, and happens seldom."""
        number, handle = device.watched.number, ctypes.c_void_p()
        code = self._call("nvmlDeviceGetHandleByIndex_v2", number, ctypes.byref(handle))
        if code != _SUCCESS:
            return code
        memory, mode, pending = _Memory(), ctypes.c_uint(), ctypes.c_uint()
        code = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        if code in _LOST:
            return code
        is_known = code == _SUCCESS
        device.memory = int(memory.used) if is_known else None
        code = self._call("nvmlDeviceGetMigMode", handle, ctypes.byref(mode), ctypes.byref(pending))
        is_cut = code == _SUCCESS and mode.value == 1
        name = device.watched.name or self._string("nvmlDeviceGetName", handle)
        uuid = device.watched.uuid or self._string("nvmlDeviceGetUUID", handle)
        device.watched = Watched(number, uuid, name, int(memory.total) if is_known else None, is_cut)
        device.instances = self._instances(handle) if is_cut else []
        device.handle = handle
        return _SUCCESS

    def _instances(self, handle: ctypes.c_void_p) -> List[ctypes.c_void_p]:
        count, found = ctypes.c_uint(), []
        self._call("nvmlDeviceGetMaxMigDeviceCount", handle, ctypes.byref(count))
        for number in range(count.value):
            instance = ctypes.c_void_p()
            if self._call("nvmlDeviceGetMigDeviceHandleByIndex", handle, number, ctypes.byref(instance)) == _SUCCESS:
                found.append(instance)
        return found

    def _running(self, name: str, handle: Any, asking: _Asking) -> Optional[Mapping[int, Optional[int]]]:
        """Processes and their memory; None where nobody can say, or where they had no room and no call is left."""
        while asking.left > 0:
            count = ctypes.c_uint(len(self._processes))
            code = asking.note(self._newest(name, handle, ctypes.byref(count), self._processes))
            if code == _SUCCESS:
                rows = (self._processes[place] for place in range(count.value))
                return _together([{int(row.pid): _memory_of(row)} for row in rows])
            if code != _INSUFFICIENT_SIZE:
                return None
            self._processes = (_Process * (count.value + _ROOM))()
        return None

    def _on_instances(self, device: _Device, asking: _Asking) -> Optional[Mapping[int, Optional[int]]]:
        """Of a device in parts. Only the privileged may ask for all at once; the parts are asked a few at a time, and
        what the others said last is kept."""
        if not device.is_closed:
            found = self._running(_COMPUTE, device.handle, asking)
            device.is_closed = found is None and asking.codes[-1] == _NO_PERMISSION
            return found
        for _ in range(min(CALLS - 1, len(device.instances))):
            place = device.next_instance % len(device.instances)
            device.next_instance += 1
            device.on_instance[place] = self._running(_COMPUTE, device.instances[place], asking) or {}
        return _together(list(device.on_instance.values())) if device.instances else None

    def _computing(self, device: _Device, asking: _Asking) -> Optional[Mapping[int, int]]:
        """What each process has computed since the last look. The driver has no entry for one that did nothing."""
        now = int(time.time() * 1000000)
        since = max(0, min(device.since, now - _SHORTEST))
        while asking.left > 0:
            count = ctypes.c_uint(len(self._shares))
            code = asking.note(
                self._call(
                    "nvmlDeviceGetProcessUtilization",
                    device.handle,
                    self._shares,
                    ctypes.byref(count),
                    ctypes.c_ulonglong(since),
                )
            )
            if code == _NOT_FOUND:
                return {}
            if code == _SUCCESS:
                rows = [self._shares[place] for place in range(count.value)]
                device.since = max([device.since] + [int(row.time) for row in rows if row.time <= now + _SHORTEST])
                return _shares(rows)
            if code != _INSUFFICIENT_SIZE:
                return None
            self._shares = (_Share * (count.value + _ROOM))()
        return None

    def _utilisation(self, device: _Device, asking: _Asking) -> Optional[int]:
        rates = _Utilisation()
        if asking.left == 0:
            return None
        code = asking.note(self._call("nvmlDeviceGetUtilizationRates", device.handle, ctypes.byref(rates)))
        return int(rates.gpu) if code == _SUCCESS else None

    def _in_turn(self, device: _Device, asking: _Asking, found: Look, is_asked: bool) -> Look:
        found, device.memory = found._replace(memory=device.memory), None
        if asking.left == 0:
            return found
        turn = _MPS if is_asked and device.clients else _TURNS[device.turn % len(_TURNS)]
        device.turn += 1
        if turn == _MPS:
            clients = self._running(_MPS_CLIENTS, device.handle, asking)
            device.clients = clients or {}
            return found
        if turn == _MEMORY:
            memory = _Memory()
            code = asking.note(self._call("nvmlDeviceGetMemoryInfo", device.handle, ctypes.byref(memory)))
            return found._replace(memory=int(memory.used)) if code == _SUCCESS else found
        value = ctypes.c_uint()
        if turn == _POWER:
            code = asking.note(self._call("nvmlDeviceGetPowerUsage", device.handle, ctypes.byref(value)))
            return found._replace(power=round(value.value / 1000.0, 1)) if code == _SUCCESS else found
        code = asking.note(self._call("nvmlDeviceGetTemperature", device.handle, 0, ctypes.byref(value)))
        return found._replace(temperature=int(value.value)) if code == _SUCCESS else found

    def _check(self, device: _Device, asking: _Asking) -> None:
        """Lost is a device that says so, and one of which no call answers."""
        problems = [code for code in asking.codes if code in _LOST]
        if _SUCCESS not in asking.codes and _NOT_FOUND not in asking.codes:
            problems += [code for code in asking.codes if code not in _SILENT]
        if problems:
            device.handle = None
            raise Lost(self._text(problems[0]))

    def _newest(self, name: str, *arguments: Any) -> int:
        for form in self._forms.get(name, _FORMS):
            code = self._call(name + form, *arguments)
            if code != _FUNCTION_NOT_FOUND:
                self._forms[name] = (form,)
                return code
        return _FUNCTION_NOT_FOUND

    def _call(self, name: str, *arguments: Any) -> int:
        try:
            return int(getattr(self._library, name)(*arguments))
        except AttributeError:
            return _FUNCTION_NOT_FOUND

    def _string(self, name: str, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(96)
        code = self._call(name, handle, text, ctypes.c_uint(len(text)))
        return text.value.decode("utf-8", "replace") if code == _SUCCESS else ""

    def _text(self, code: int) -> str:
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


def _memory_of(row: Any) -> Optional[int]:
    return None if row.memory == _UNKNOWN_MEMORY else int(row.memory)


def _together(lists: List[Mapping[int, Optional[int]]]) -> Mapping[int, Optional[int]]:
    """A process that is in several parts of a device holds all of it."""
    found: Dict[int, Optional[int]] = {}
    for each in lists:
        for pid, memory in each.items():
            known = found.get(pid)
            found[pid] = memory if known is None else known + (memory or 0)
    return found


def _shares(rows: List[Any]) -> Mapping[int, int]:
    """The mean of each process's entries, rounded up: what computed a little has computed. More than all there is comes
    from a driver's mistake."""
    by_pid: Dict[int, List[int]] = {}
    for row in rows:
        if row.sm <= 100:
            by_pid.setdefault(int(row.pid), []).append(int(row.sm))
    return {pid: -(-sum(found) // len(found)) for pid, found in by_pid.items()}
