"""The devices of this machine as facts: those that its driver reported, and those that can be named and nothing more:
of Intel, of AMD without `amdsmi`, and of Apple.

What draws the console of a server or a virtual machine is none to compute on; of the makers below only AMD made such.
"""

import os
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from holdfast.farside.gpu.gpu_facts import NAMELESS, OK, DeviceFacts, GpuFacts
from holdfast.farside.gpu.occupants import strangers
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.units import computing
from holdfast.farside.machine import gpus
from holdfast.farside.system.files import names_in

STATE = "named"
_INTEL, _AMD = "0x8086", "0x1002"
_MAKERS = {_INTEL: "Intel", _AMD: "AMD"}
_CONSOLES = ((_AMD, "0x515e"), (_AMD, "0x5969"))
_DISPLAY = "0x03"
_LISTS = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")


def name_others(
    root: str = "/", platform: str = sys.platform, ask: Optional[Callable[[], str]] = None
) -> Tuple[DeviceFacts, ...]:
    """`ask` says what a Mac's processor is called."""
    if platform == "darwin":
        chip = (ask or _chip)()
        return (_named(0, "", chip),) if chip.startswith("Apple") else ()
    found = sorted(_cards(root).items())
    return tuple(_named(number, pci, name) for number, (pci, name) in enumerate(found))


def _named(number: int, uuid: str, name: str) -> DeviceFacts:
    return DeviceFacts(number, uuid, name, None, None, STATE, False, ())


def _cards(root: str) -> Dict[str, str]:
    """Names by PCI address."""
    folder = os.path.join(root, "sys/class/drm")
    found: Dict[str, str] = {}
    for card in names_in(folder):
        device = os.path.join(folder, card, "device")
        maker, model = _read(os.path.join(device, "vendor")), _read(os.path.join(device, "device"))
        is_card = card.startswith("card") and card[4:].isdigit()  # the others are its connectors
        if not is_card or maker not in _MAKERS or (maker, model) in _CONSOLES:
            continue
        if not _read(os.path.join(device, "class")).startswith(_DISPLAY):
            continue
        pci = os.path.basename(os.path.realpath(device))
        own = _read(os.path.join(device, "product_name"))
        found[pci] = "%s %s" % (_MAKERS[maker], own or _listed(root, maker, model) or model)
    return found


def _listed(root: str, maker: str, model: str) -> str:
    """What the machine's list of PCI devices calls it."""
    for path in _LISTS:
        is_maker = False
        for line in _read(os.path.join(root, path)).splitlines():
            if line[:1] not in ("\t", "#", ""):
                is_maker = line.startswith(maker[2:])
            elif is_maker and line.startswith("\t" + model[2:]):
                return line[5:].strip()
    return ""


def _chip() -> str:
    import subprocess

    argv = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.check_output(argv, stderr=subprocess.DEVNULL, timeout=5).decode("utf-8", "replace").strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read().strip("\n")
    except OSError:
        return ""


_FIRST_NAMESPACE = "pid:[4026531836]"
"""Of processes: the kernel gives the machine's own always this number."""


def gather(request: GpuRequest, report: gpus.Report, is_amd_watched: bool = False) -> GpuFacts:
    """Of the machine alone: the caller adds what is about the run. Devices that can only be named are
    looked for where no driver answers. `is_amd_watched`: those of AMD are more than a name, and what is to be known of
    them is in the samples."""
    devices, state = tuple(_device(each) for each in report["devices"]), str(report["state"])
    if not devices and state == gpus.NO_DRIVER:
        devices = name_others()
    if is_amd_watched:
        ours = [each for each in devices if each.name.startswith("AMD ")]
        devices, state = tuple(each._replace(number=number, state=OK) for number, each in enumerate(ours)), ""
    return GpuFacts(
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


def _device(found: Dict[str, Any]) -> DeviceFacts:
    return DeviceFacts(
        number=int(found["index"]),
        uuid=str(found["uuid"] or ""),
        name=str(found["name"] or NAMELESS),
        memory_total=found["memory_total"],
        memory_free=found["memory_free"],
        state=str(found["state"]),
        mig=bool(found["mig"]),
        strangers=tuple(each.pid for each in strangers(computing(found["processes"] or []))),
    )
