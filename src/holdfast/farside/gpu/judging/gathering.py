"""Facts from what the driver said of the machine."""

from typing import Any, Dict, Tuple

from holdfast.farside.gpu.judging.facts import Device, Facts
from holdfast.farside.gpu.request import Request
from holdfast.farside.gpu.watching.other_devices import name_others
from holdfast.farside.machine import gpus


def gather(request: Request, report: gpus.Report) -> Facts:
    """Of the machine alone: what is about the run is put in by whoever knows it. Devices that can only be named are
    looked for where no driver answers."""
    devices = tuple(_device(each) for each in report["devices"])
    if not devices and report["state"] == gpus.NO_DRIVER:
        devices = name_others()
    return Facts(
        request=request,
        driver_state=str(report["state"]),
        problem=str(report["problem"]),
        driver=report["driver"],
        cuda=report["cuda"],
        devices=devices,
        container=None,
        refuses=False,
        leased=(),
        visible=None,
        findings=(),
        frameworks=(),
        file="",
    )


def _device(found: Dict[str, Any]) -> Device:
    return Device(
        number=int(found["index"]),
        uuid=str(found["uuid"] or ""),
        name=str(found["name"] or "unknown"),
        memory_total=found["memory_total"],
        memory_free=found["memory_free"],
        state=str(found["state"]),
        mig=bool(found["mig"]),
        strangers=_strangers(found),
    )


def _strangers(found: Dict[str, Any]) -> Tuple[int, ...]:
    """What draws on a screen does not compute."""
    return tuple(int(each["pid"]) for each in found["processes"] or [] if each["kind"] != "graphics")
