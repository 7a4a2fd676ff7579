"""Watches GPUs through NVML, with at most four calls for each look at a device.

Who computes and how much is asked every time; memory, power, temperature and the clients of MPS in turn. Handles are
kept: a list that outgrows its buffer costs one more call, and the one in turn is left out for it.
"""

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.watch.source import DeviceLook, Lost, Source, Unusable
from holdfast.farside.machine import nvml
from holdfast.farside.machine.nvml import Handle, Nvml, NvmlError

CALLS = 4
_SHORTEST = 1000000
"""Microseconds that are looked back at least: the driver counts about once a second, and asked twice at once it would
say that no process computes."""
_MEMORY, _POWER, _TEMPERATURE, _MPS = "memory", "power", "temperature", "mps"
_TURNS = (_POWER, _TEMPERATURE, _MEMORY, _MPS)


class _Device:
    """What is kept of a device between looks."""

    def __init__(self, number: int) -> None:
        self.watched = GpuDevice(number, "", "")
        self.handle: Optional[Handle] = None
        self.instances: List[Handle] = []
        self.on_instance: Dict[int, Mapping[int, Optional[int]]] = {}
        self.memory: Optional[int] = None
        self.clients: Mapping[int, Optional[int]] = {}
        self.is_closed = False
        self.turn = self.next_instance = 0
        self.since = 0


class _Asking:
    """The calls of one look and their errors. `left`: how many calls it may still make."""

    def __init__(self) -> None:
        self.errors: List[Optional[NvmlError]] = []

    @property
    def left(self) -> int:
        return CALLS - len(self.errors)

    @property
    def last_code(self) -> int:
        return self.errors[-1].code if self.errors and self.errors[-1] else 0

    def value(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The call's result; None if it failed."""
        try:
            found = call(*arguments)
        except NvmlError as error:
            self.errors.append(error)
            return None
        self.errors.append(None)
        return found


class NvmlSource(Source):
    def __init__(self, environment: Dict[str, str]) -> None:
        self._environment = environment
        self._devices: Dict[int, _Device] = {}

    def open(self) -> None:
        try:
            self._nvml = Nvml(self._environment)
            count = self._nvml.count()
        except (OSError, NvmlError) as error:
            raise Unusable(str(error))
        for number in range(count):
            device = self._devices[number] = _Device(number)
            try:
                self._identify(device)
            except NvmlError as error:
                if error.code == nvml.NO_PERMISSION:
                    del self._devices[number]  # not for this user

    def devices(self) -> Tuple[GpuDevice, ...]:
        return tuple(each.watched for each in self._devices.values())

    def look(self, number: int, is_asked: bool) -> DeviceLook:
        device, asking = self._devices[number], _Asking()
        if device.handle is None:
            try:
                self._identify(device)
            except NvmlError as error:
                raise Lost(str(error))
            return DeviceLook(memory=device.memory)  # that were calls enough for now
        if device.watched.mig:
            found = DeviceLook(processes=self._on_instances(device, asking))
        else:
            processes = self._running(nvml.COMPUTE, device.handle, asking)
            shares = self._computing(device, asking)
            found = DeviceLook(processes=processes, shares=shares, utilisation=self._utilisation(device, asking))
        found = self._in_turn(device, asking, found, is_asked)
        _check(device, asking)
        if found.processes is None or not device.clients:
            return found
        return found._replace(processes=_together([device.clients, found.processes]))

    def _identify(self, device: _Device) -> None:
        """Called at the start, and again for a device that was lost: it needs more calls than a look. Raises NvmlError
        if the device does not answer."""
        number, asking = device.watched.number, _Asking()
        handle = self._nvml.device(number)
        memory = asking.value(self._nvml.value, nvml.NvmlMemory, "nvmlDeviceGetMemoryInfo", handle)
        if asking.errors[0] and asking.errors[0].code in nvml.LOST:
            raise asking.errors[0]
        device.memory = None if memory is None else int(memory.used)
        is_cut = bool(asking.value(self._nvml.is_mig, handle))
        name = device.watched.name or asking.value(self._nvml.text, "nvmlDeviceGetName", handle) or ""
        uuid = device.watched.uuid or asking.value(self._nvml.text, "nvmlDeviceGetUUID", handle) or ""
        total = None if memory is None else int(memory.total)
        device.watched = GpuDevice(number, uuid, name, total, mig=is_cut)
        device.instances = self._instances(handle, asking) if is_cut else []
        device.handle = handle

    def _instances(self, handle: Handle, asking: _Asking) -> List[Handle]:
        count = asking.value(self._nvml.number, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0
        found = [asking.value(self._nvml.instance, handle, number) for number in range(count)]
        return [each for each in found if each is not None]

    def _running(self, name: str, handle: Any, asking: _Asking) -> Optional[Mapping[int, Optional[int]]]:
        """Processes and their memory; None if the driver does not tell, or if the list is too long and no call is
        left."""
        while asking.left > 0:
            rows = asking.value(self._nvml.processes, name, handle)
            if rows is not None:
                return _together([{int(row.pid): row.memory} for row in rows])
            if asking.last_code != nvml.INSUFFICIENT_SIZE:
                return None
        return None

    def _on_instances(self, device: _Device, asking: _Asking) -> Optional[Mapping[int, Optional[int]]]:
        """Of a device in parts. Only the privileged may ask for all at once; the parts are asked a few at a time, and
        what the others said last is kept."""
        if not device.is_closed:
            found = self._running(nvml.COMPUTE, device.handle, asking)
            device.is_closed = found is None and asking.last_code == nvml.NO_PERMISSION
            return found
        for _ in range(min(CALLS - 1, len(device.instances))):
            place = device.next_instance % len(device.instances)
            device.next_instance += 1
            device.on_instance[place] = self._running(nvml.COMPUTE, device.instances[place], asking) or {}
        return _together(list(device.on_instance.values())) if device.instances else None

    def _computing(self, device: _Device, asking: _Asking) -> Optional[Mapping[int, int]]:
        """What each process has computed since the last look. The driver has no entry for one that did nothing."""
        now = int(time.time() * 1000000)
        since = max(0, min(device.since, now - _SHORTEST))
        while asking.left > 0:
            rows = asking.value(self._nvml.shares, device.handle, since)
            if rows is not None:
                device.since = max([device.since] + [int(row.time) for row in rows if row.time <= now + _SHORTEST])
                return _shares(rows)
            if asking.last_code != nvml.INSUFFICIENT_SIZE:
                return {} if asking.last_code == nvml.NOT_FOUND else None
        return None

    def _utilisation(self, device: _Device, asking: _Asking) -> Optional[int]:
        if asking.left == 0:
            return None
        rates = asking.value(self._nvml.value, nvml.Rates, "nvmlDeviceGetUtilizationRates", device.handle)
        return None if rates is None else int(rates.gpu)

    def _in_turn(self, device: _Device, asking: _Asking, found: DeviceLook, is_asked: bool) -> DeviceLook:
        found, device.memory = found._replace(memory=device.memory), None
        if asking.left == 0:
            return found
        turn = _MPS if is_asked and device.clients else _TURNS[device.turn % len(_TURNS)]
        device.turn += 1
        if turn == _MPS:
            device.clients = self._running(nvml.MPS_CLIENTS, device.handle, asking) or {}
            return found
        if turn == _MEMORY:
            memory = asking.value(self._nvml.value, nvml.NvmlMemory, "nvmlDeviceGetMemoryInfo", device.handle)
            return found if memory is None else found._replace(memory=int(memory.used))
        if turn == _POWER:
            power = asking.value(self._nvml.number, "nvmlDeviceGetPowerUsage", device.handle)
            return found._replace(power=None if power is None else round(power / 1000.0, 1))
        return found._replace(temperature=asking.value(self._nvml.number, "nvmlDeviceGetTemperature", device.handle, 0))


def _check(device: _Device, asking: _Asking) -> None:
    """Lost is a device that says so, and one of which no call answers. Raises Lost."""
    errors = [error for error in asking.errors if error is not None]
    problems = [error for error in errors if error.code in nvml.LOST]
    if len(errors) == len(asking.errors) and not any(error.code == nvml.NOT_FOUND for error in errors):
        problems += [error for error in errors if error.code not in nvml.SILENT]
    if problems:
        device.handle = None
        raise Lost(str(problems[0]))


def _together(lists: List[Mapping[int, Optional[int]]]) -> Mapping[int, Optional[int]]:
    """One entry per process: its memory in several parts of a device is added up."""
    found: Dict[int, Optional[int]] = {}
    for each in lists:
        for pid, memory in each.items():
            known = found.get(pid)
            found[pid] = memory if known is None else known + (memory or 0)
    return found


def _shares(rows: List[Any]) -> Mapping[int, int]:
    """The mean of each process's entries, rounded up, so that a little is not 0. Entries above 100 % are mistakes of
    the driver and do not count."""
    by_pid: Dict[int, List[int]] = {}
    for row in rows:
        if row.sm <= 100:
            by_pid.setdefault(int(row.pid), []).append(int(row.sm))
    return {pid: -(-sum(found) // len(found)) for pid, found in by_pid.items()}
