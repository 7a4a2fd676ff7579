"""A GPU, or an instance of MIG, as the far side knows it, and those of a driver's report. Pure."""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

OK, NAMED = "ok", "named"
NAMELESS = "unknown"
"""Instead of the name of a device that does not say it."""
_GRAPHICS = "graphics"


class GpuDevice(NamedTuple):
    """`number` is the driver's. `state` is `ok`, `lost` or `failed`, or `named` if nothing but the name is known.
    Memory is in bytes. `strangers` are processes that compute on it: at the start of a run none of them is the run's.
    `instance` is the place among the device's instances. `is_leased`: to the run that is judged."""

    number: int
    uuid: str
    name: str
    memory_total: Optional[int] = None
    memory_free: Optional[int] = None
    state: str = OK
    mig: bool = False
    strangers: Tuple[int, ...] = ()
    instance: Optional[int] = None
    is_leased: bool = False

    @property
    def label(self) -> str:
        shown = "GPU %d" % self.number
        return shown if self.instance is None else "%s instance %d" % (shown, self.instance)

    @property
    def cdi(self) -> str:
        """Its name in the CDI specifications that NVIDIA's tool writes."""
        return "%d" % self.number if self.instance is None else "%d:%d" % (self.number, self.instance)

    @property
    def memory_used(self) -> Optional[int]:
        return None if self.memory_total is None or self.memory_free is None else self.memory_total - self.memory_free


def devices(report: Dict[str, Any], nameless: str = NAMELESS) -> Iterator[GpuDevice]:
    """All of a report (`machine.gpus`), each followed by its instances. If the driver does not say who is on a device,
    it counts as free."""
    for row in report["devices"]:
        processes = row["processes"] or []
        yield _device(row, row, processes, nameless)
        for part in row["instances"]:
            # A process may be on any of them if the driver does not say on which.
            there = [each for each in processes if each.get("instance") in (None, part.get("gpu_instance"))]
            yield _device(row, part, there, nameless)


def units(report: Dict[str, Any]) -> List[GpuDevice]:
    """What can be leased: devices that work, and of one in MIG mode its instances, in the driver's order."""
    found = devices(report, "GPU")
    return [each for each in found if each.state == OK and each.uuid and each.mig == (each.instance is not None)]


def _device(row: Dict[str, Any], part: Dict[str, Any], processes: Sequence[Dict[str, Any]], nameless: str) -> GpuDevice:
    """Of the whole device, which is its own `part`, or of an instance."""
    return GpuDevice(
        number=int(row["index"]),
        uuid=str(part["uuid"] or ""),
        name=str(part["name"] or row["name"] or nameless),
        memory_total=part["memory_total"],
        memory_free=part["memory_free"],
        state=str(row["state"]),
        mig=bool(row["mig"]),
        strangers=_computing(processes),
        instance=None if part is row else int(part["index"]),
    )


def _computing(rows: Sequence[Dict[str, Any]]) -> Tuple[int, ...]:
    """The processes of a device that compute. Programs that draw on a screen do not, even if the driver lists them a
    second time because they use the device to compute for that, as browsers and desktops do."""
    drawing = {int(each["pid"]) for each in rows if each["kind"] == _GRAPHICS}
    return tuple(sorted({int(each["pid"]) for each in rows} - drawing))
