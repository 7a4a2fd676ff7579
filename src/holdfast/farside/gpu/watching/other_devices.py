"""GPUs that can be named and nothing more: those of Intel, those of AMD without `amdsmi`, and Apple's.

What draws the console of a server or a virtual machine is none to compute on; of the makers below only AMD made such.
"""

import os
import sys
from typing import Callable, Dict, List, Optional, Tuple

from holdfast.farside.gpu.judging.facts import Device

STATE = "named"
_INTEL, _AMD = "0x8086", "0x1002"
_MAKERS = {_INTEL: "Intel", _AMD: "AMD"}
_CONSOLES = ((_AMD, "0x515e"), (_AMD, "0x5969"))
_DISPLAY = "0x03"
_LISTS = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")


def name_others(
    root: str = "/", platform: str = sys.platform, ask: Optional[Callable[[], str]] = None
) -> Tuple[Device, ...]:
    """`ask` says what a Mac's processor is called."""
    if platform == "darwin":
        chip = (ask or _chip)()
        return (_named(0, "", chip),) if chip.startswith("Apple") else ()
    found = sorted(_cards(root).items())
    return tuple(_named(number, pci, name) for number, (pci, name) in enumerate(found))


def _named(number: int, uuid: str, name: str) -> Device:
    return Device(number, uuid, name, None, None, STATE, False, ())


def _cards(root: str) -> Dict[str, str]:
    """Names by PCI address."""
    folder = os.path.join(root, "sys/class/drm")
    found: Dict[str, str] = {}
    for card in _names(folder):
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


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read().strip("\n")
    except OSError:
        return ""
