"""Where samples come from: what every source answers, and which one this machine has."""

import os
import sys
from typing import List, Mapping, NamedTuple, Optional, Tuple

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.machine import gpus

NVML, AMDSMI, SYSFS = "nvml", "amdsmi", "sysfs"
_ROCM = "opt/rocm/share/amd_smi"


class DeviceLook(NamedTuple):
    """One look at one device; None is not known. `processes` are pids with their memory. `shares` are per cent of the
    device's computing per process; a process without one computes nothing."""

    utilisation: Optional[int] = None
    memory: Optional[int] = None
    power: Optional[float] = None
    temperature: Optional[int] = None
    processes: Optional[Mapping[int, Optional[int]]] = None
    shares: Optional[Mapping[int, int]] = None


class Lost(Exception):
    """The device answers nothing, with the driver's words. Asking again later is allowed."""


class Unusable(Exception):
    """The driver cannot be used at all; the message is its own."""


class Source:
    """A driver's library. Every call may hang for ever."""

    def open(self) -> None:
        """Load and ask what there is. Raises Unusable."""
        raise NotImplementedError

    def devices(self) -> Tuple[GpuDevice, ...]:
        """As they are known now; only the number of one that was lost all the time."""
        raise NotImplementedError

    def look(self, number: int, is_asked: bool) -> DeviceLook:
        """At most four calls of the driver. `is_asked`: a caller waits for who is on the device now. Raises Lost."""
        raise NotImplementedError


def kind(environment: Mapping[str, str], root: str = "/") -> str:
    """What there is to ask here, or nothing. Loads nothing: that may hang."""
    if gpus.is_present(dict(environment), root):
        return NVML
    if amdsmi_folder(environment, root):
        return AMDSMI
    return SYSFS if gpus.name_others(root) else ""


def amdsmi_folder(environment: Mapping[str, str], root: str = "/") -> str:
    """The folder with the module `amdsmi`, or nothing. `HOLDFAST_AMDSMI` names it instead of all places where it may
    be; else there must be the kernel's part too."""
    named = environment.get("HOLDFAST_AMDSMI")
    if named is not None:
        return named if os.path.isdir(named) else ""
    if not os.path.exists(os.path.join(root, "dev/kfd")):
        return ""
    folders = [os.path.join(root, _ROCM)] + [each for each in sys.path if each] + _site_packages()
    return next((each for each in folders if os.path.isdir(os.path.join(each, "amdsmi"))), "")


def _site_packages() -> List[str]:
    """Of this Python: the far side runs without them."""
    import site

    return site.getsitepackages()
