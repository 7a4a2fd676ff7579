"""Watches GPUs of AMD through the Python module `amdsmi`, which comes with ROCm.

A process's part of the computing stays unknown: what the module has for it counts engines that compute queues do not go
through, so that a busy process may have nothing.
"""

import importlib
import sys
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.watch.source import DeviceLook, Lost, Source, Unusable

_MEBIBYTE = 1 << 20
_NO_VALUE = (0xFFFF, 0xFFFFFFFF)
"""What older versions answer where newer ones say `N/A`."""
_MEMORY, _POWER, _TEMPERATURE = "memory", "power", "temperature"
_TURNS = (_POWER, _TEMPERATURE, _MEMORY)


class _Asking:
    """The calls of one look: what fails is None, and its problem is remembered."""

    def __init__(self) -> None:
        self.problem = ""
        self.has_answer = False

    def value(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            found = call(*arguments)
        except Exception as error:  # noqa: BLE001 - the module's own class, or whatever a driver makes of it
            self.problem = self.problem or str(error)
            return None
        self.has_answer = True
        return found


class AmdSource(Source):
    """`folder` is where the module is."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._module: Any = None
        self._handles: List[Any] = []
        self._devices: Dict[int, GpuDevice] = {}
        self._turn: Dict[int, int] = {}
        self._sensor = ""

    def open(self) -> None:
        sys.path.append(self._folder)
        try:
            self._module = importlib.import_module("amdsmi")  # loads the library, and fails where that does
            self._module.amdsmi_init()
            self._handles = list(self._module.amdsmi_get_processor_handles())
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing can be watched
            raise Unusable("amdsmi: %s" % error)
        for number in range(len(self._handles)):
            self._devices[number] = self._identify(number)

    def devices(self) -> Tuple[GpuDevice, ...]:
        return tuple(self._devices[number] for number in sorted(self._devices))

    def look(self, number: int, is_asked: bool) -> DeviceLook:
        asking, handle, module = _Asking(), self._handles[number], self._module
        activity = asking.value(module.amdsmi_get_gpu_activity, handle)
        processes = self._processes(handle, asking)
        found = DeviceLook(utilisation=_within(_field(activity, "gfx_activity"), 100), processes=processes)
        found = self._in_turn(number, asking, found)
        if not asking.has_answer:
            raise Lost(asking.problem)
        if not self._devices[number].uuid:
            self._devices[number] = self._identify(number)
        return found

    def _identify(self, number: int) -> GpuDevice:
        asking, handle = _Asking(), self._handles[number]
        name = _field(asking.value(self._module.amdsmi_get_gpu_asic_info, handle), "market_name")
        uuid = asking.value(self._module.amdsmi_get_gpu_device_uuid, handle)
        total = _number(_field(asking.value(self._module.amdsmi_get_gpu_vram_usage, handle), "vram_total"))
        return GpuDevice(
            number=number,
            uuid=str(uuid or ""),
            name=str(name or "AMD GPU"),
            memory_total=None if total is None else int(total) * _MEBIBYTE,
        )

    def _processes(self, handle: Any, asking: _Asking) -> Optional[Mapping[int, Optional[int]]]:
        rows = asking.value(self._module.amdsmi_get_gpu_process_list, handle)
        if rows is None:
            return None
        if any(not isinstance(row, dict) for row in rows):  # before ROCm 6.1: only handles, each asked for by itself
            one = self._module.amdsmi_get_gpu_process_info
            rows = [asking.value(one, handle, row) for row in rows]
        return {int(row["pid"]): _vram(row) for row in rows if row is not None}

    def _in_turn(self, number: int, asking: _Asking, found: DeviceLook) -> DeviceLook:
        handle, module = self._handles[number], self._module
        turn = _TURNS[self._turn.get(number, 0) % len(_TURNS)]
        self._turn[number] = self._turn.get(number, 0) + 1
        if turn == _POWER:
            answer = asking.value(module.amdsmi_get_power_info, handle)
            names = ("socket_power", "current_socket_power", "average_socket_power")
            return found._replace(power=_first(_number(_field(answer, name)) for name in names))
        if turn == _MEMORY:
            used = _number(_field(asking.value(module.amdsmi_get_gpu_vram_usage, handle), "vram_used"))
            return found._replace(memory=None if used is None else int(used) * _MEBIBYTE)
        return found._replace(temperature=self._temperature(handle, asking))

    def _temperature(self, handle: Any, asking: _Asking) -> Optional[int]:
        """Not every device has a sensor at its edge; which one answers is found once."""
        sensors, current = self._module.AmdSmiTemperatureType, self._module.AmdSmiTemperatureMetric.CURRENT
        for name in (self._sensor,) if self._sensor else ("EDGE", "JUNCTION"):
            found = _number(asking.value(self._module.amdsmi_get_temp_metric, handle, getattr(sensors, name), current))
            if found:
                self._sensor = name
                return int(found if found < 1000 else found / 1000)  # early versions: thousandths
        return None


def _field(found: Any, name: str) -> Any:
    return found.get(name) if isinstance(found, dict) else None


def _number(found: Any) -> Optional[float]:
    """None for `N/A`."""
    is_one = isinstance(found, (int, float)) and not isinstance(found, bool) and found not in _NO_VALUE
    return float(found) if is_one else None


def _within(found: Any, most: int) -> Optional[int]:
    number = _number(found)
    return int(number) if number is not None and 0 <= number <= most else None


def _first(found: Iterable[Optional[float]]) -> Optional[float]:
    """Of readings of the same thing, of which some devices have one and some another."""
    return next((each for each in found if each), None)


def _vram(row: Mapping[str, Any]) -> Optional[int]:
    used = _number(_field(row.get("memory_usage"), "vram_mem"))
    return None if used is None else int(used)
