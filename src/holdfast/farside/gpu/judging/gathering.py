"""Facts from what the driver said of the machine."""

import os
from typing import Any, Dict

from holdfast.farside.gpu.judging.facts import NAMELESS, OK, Device, Facts
from holdfast.farside.gpu.leasing.occupants import strangers
from holdfast.farside.gpu.leasing.units import computing
from holdfast.farside.gpu.request import Request
from holdfast.farside.gpu.watching.other_devices import name_others
from holdfast.farside.machine import gpus

_FIRST_NAMESPACE = "pid:[4026531836]"
"""Of processes: the kernel gives the machine's own always this number."""


def gather(request: Request, report: gpus.Report, is_amd_watched: bool = False) -> Facts:
    """Of the machine alone: what is about the run is put in by whoever knows it. Devices that can only be named are
    looked for where no driver answers. `is_amd_watched`: those of AMD are more than a name, and what is to be known of
    them is in the samples."""
    devices, state = tuple(_device(each) for each in report["devices"]), str(report["state"])
    if not devices and state == gpus.NO_DRIVER:
        devices = name_others()
    if is_amd_watched:
        ours = [each for each in devices if each.name.startswith("AMD ")]
        devices, state = tuple(each._replace(number=number, state=OK) for number, each in enumerate(ours)), ""
    return Facts(
        request=request,
        driver_state=state,
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
        has_machine_pids=_has_machine_pids(),
    )


def _has_machine_pids() -> bool:
    try:
        return os.readlink("/proc/self/ns/pid") == _FIRST_NAMESPACE
    except OSError:
        return False


def _device(found: Dict[str, Any]) -> Device:
    return Device(
        number=int(found["index"]),
        uuid=str(found["uuid"] or ""),
        name=str(found["name"] or NAMELESS),
        memory_total=found["memory_total"],
        memory_free=found["memory_free"],
        state=str(found["state"]),
        mig=bool(found["mig"]),
        strangers=tuple(each.pid for each in strangers(computing(found["processes"] or []))),
    )
