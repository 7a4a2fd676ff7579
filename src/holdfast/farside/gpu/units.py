"""What can be leased on a machine: its GPUs, and of one that is cut by MIG each instance by itself. Pure."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.machine.gpus import Report

GRAPHICS = "graphics"


class Unit(NamedTuple):
    """`number` is the driver's; `instance` is a place among the instances of that device. `total` is its memory in
    bytes."""

    number: int
    instance: Optional[int]
    uuid: str
    name: str
    total: Optional[int]

    @property
    def label(self) -> str:
        shown = "GPU %d" % self.number
        return shown if self.instance is None else "%s instance %d" % (shown, self.instance)

    @property
    def cdi(self) -> str:
        """As the specifications of CDI call it that NVIDIA's tool writes."""
        return "%d" % self.number if self.instance is None else "%d:%d" % (self.number, self.instance)


class _Condition(NamedTuple):
    """What is on a unit: compute processes, and free memory in bytes where it is known."""

    pids: Tuple[int, ...]
    free: Optional[int]


def units(report: Report) -> Tuple[Unit, ...]:
    """Those that work, in the driver's order. A device in MIG mode without instances computes nothing."""
    found: List[Unit] = []
    for device in report["devices"]:
        if device["state"] != "ok" or not device["uuid"]:
            continue
        number, name = int(device["index"]), str(device["name"] or "GPU")
        if not device["mig"]:
            found.append(Unit(number, None, str(device["uuid"]), name, device["memory_total"]))
            continue
        for part in device["instances"]:
            if part["uuid"]:
                shown = str(part["name"] or name)
                found.append(Unit(number, int(part["index"]), str(part["uuid"]), shown, part["memory_total"]))
    return tuple(found)


def large_enough(found: Tuple[Unit, ...], least: Optional[int]) -> Tuple[Unit, ...]:
    """Those with at least so many bytes in all; one whose memory is not known is none of them."""
    if not least:
        return found
    return tuple(each for each in found if each.total is not None and each.total >= least)


def conditions(report: Report) -> Dict[str, _Condition]:
    """By UUID. Screens do not count. A device counts as free if the driver does not tell who is on it."""
    found: Dict[str, _Condition] = {}
    for device in report["devices"]:
        rows = device["processes"] or []
        found[str(device["uuid"])] = _Condition(computing(rows), device["memory_free"])
        for part in device["instances"]:
            # A process of which the driver does not say where it is may be on any of them.
            there = [each for each in rows if each.get("instance") in (None, part.get("gpu_instance"))]
            found[str(part["uuid"])] = _Condition(computing(there), part["memory_free"])
    return found


def computing(rows: Sequence[Dict[str, Any]]) -> Tuple[int, ...]:
    """Who computes, of a device's processes in a report. What draws on a screen does not, also where the driver lists
    it a second time because it has the device compute something for that, as browsers and desktops do."""
    drawing = {int(each["pid"]) for each in rows if each["kind"] == GRAPHICS}
    return tuple(sorted({int(each["pid"]) for each in rows} - drawing))
