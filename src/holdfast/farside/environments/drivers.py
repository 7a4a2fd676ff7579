"""What a machine's driver and GPUs can run: which CUDA, which machine code, which PTX."""

import re
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.environments.fatbin import capability
from holdfast.farside.machine.driver_states import NO_DRIVER

Numbers = Tuple[int, ...]

RUNS, NO_CODE, PTX_TOO_NEW, UNKNOWN = "runs", "no-code", "ptx-too-new", "unknown"
_MINIMUM: Dict[Numbers, str] = {
    (8, 0): "375.26",
    (9, 0): "384.81",
    (9, 2): "396.26",
    (10, 0): "410.48",
    (10, 1): "418.39",
    (10, 2): "440.33",
    (11, 0): "450.36.06",
    (11, 1): "450.80.02",
    (12, 0): "525.60.13",
    (13, 0): "580",
}
"""From CUDA 11 on all later releases of a major version run on the same driver, which is why the rows are so few."""
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?==(\d+)(?:\.(\d+))?")


class GpuModel(NamedTuple):
    name: str
    capability: Optional[Tuple[int, int]] = None


class EnvironmentMachine(NamedTuple):
    """Where the environment will run. What is not known is empty or None, and is held against nothing."""

    platform: str = ""
    """As `platforms.platform_name` says it."""
    python: str = ""
    driver: Optional[str] = None
    cuda: Optional[str] = None
    """The newest CUDA that the driver supports, as it says itself."""
    devices: Tuple[GpuModel, ...] = ()
    is_without_gpu: bool = False
    """Known for sure: there is neither a driver nor a device."""


def machine_of(report: Dict[str, Any], platform: str, python: str) -> EnvironmentMachine:
    """From what `machine.gpus` found."""
    devices = []
    for row in report.get("devices") or []:
        found = row.get("capability")
        known = (int(found[0]), int(found[1])) if found else None
        devices.append(GpuModel(str(row.get("name") or "the GPU"), known))
    is_without = report.get("state") == NO_DRIVER and not devices
    return EnvironmentMachine(platform, python, report.get("driver"), report.get("cuda"), tuple(devices), is_without)


def minimum_driver(cuda: str) -> Optional[str]:
    """The oldest driver for Linux that runs a program built with this CUDA; of `10` alone, with its first."""
    wanted = numbers(cuda)
    same = sorted(each for each in _MINIMUM if each[:1] == wanted[:1])
    until = [each for each in same if each <= wanted] or same[:1]
    return _MINIMUM[until[-1]] if until else None


def is_too_old(machine: EnvironmentMachine, cuda: str) -> bool:
    """Whether the driver is known to be too old for programs built with this CUDA."""
    wanted, supported = numbers(cuda), numbers(machine.cuda)
    if not wanted or (supported and supported >= wanted):
        return False
    driver, needed = numbers(machine.driver), numbers(minimum_driver(cuda))
    if driver and needed:
        return driver < needed[: len(driver)]
    if supported and wanted[0] >= 11:
        return supported[0] < wanted[0]
    return bool(supported) and supported < wanted


def torch_is_too_new(packages: Sequence[str], machine: EnvironmentMachine) -> bool:
    """Whether PyTorch is among the packages of a lock, in a build that the driver is known not to run."""
    runtimes = [found for found in map(_RUNTIME.match, packages) if found]
    if not runtimes or not machine.driver or not any(line.startswith("torch==") for line in packages):
        return False
    return is_too_old(machine, "%s.%s" % (runtimes[0].group(1), runtimes[0].group(2) or "0"))


def newest_major(machine: EnvironmentMachine) -> Optional[int]:
    """The newest CUDA that surely runs here, None if there is none or it is not known."""
    if not machine.driver and not machine.cuda:
        return None
    return next((major for major in (13, 12, 11) if not is_too_old(machine, str(major))), None)


def fitness(
    architectures: Sequence[str], ptx_cuda: Optional[str], device: GpuModel, machine: EnvironmentMachine
) -> str:
    """Whether code for these architectures runs on the device: one of the words above."""
    if not architectures or device.capability is None:
        return UNKNOWN
    fitting = [each for each in architectures if _fits(each, device.capability)]
    if any(each.startswith("sm_") for each in fitting):
        return RUNS
    if not fitting:
        return NO_CODE
    supported, needed = numbers(machine.cuda), numbers(ptx_cuda)
    return PTX_TOO_NEW if supported and needed and supported < needed else RUNS


def numbers(version: Optional[str]) -> Numbers:
    """`(535, 104)` of `535.104`; none of what is no version."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(int(each) for each in found.group().split(".")) if found else ()


def _fits(architecture: str, device: Tuple[int, int]) -> bool:
    """Machine code is for its own major version and from its minor on; PTX for all that is later; what ends in `a` for
    one chip alone, in `f` for one family."""
    code = capability(architecture)
    if code == (10, 1) and device[0] == 11:
        code = (11, 0)  # one chip: CUDA 13 gave it another number
    if code is None:
        return False
    if architecture.endswith("a"):
        return code == device
    if architecture.startswith("ptx_") and not architecture.endswith("f"):
        return code <= device
    return code[0] == device[0] and code[1] <= device[1]
