"""The GPUs of this machine, asked for by a process of its own: a sick driver hangs its caller, for ever.

A report is a dict: `state` (`no-driver`, `ok`, `failed`, `timed-out`), `problem` in NVML's words, `code`, `driver`,
`cuda` and `devices`; what a device has is in `nvml.py`. Nothing is loaded or started without an NVIDIA driver. GPUs of
Intel and Apple, and of AMD without `amdsmi`, can only be named.
"""

import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from holdfast.farside.machine.driver_states import FAILED, NO_DRIVER, OK, TIMED_OUT
from holdfast.farside.system import foreign
from holdfast.farside.system.children import Attendant, CannotStart, inherited_environment
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import ENTRY
from holdfast.farside.system.programs import BRIEFLY, Program, collect
from holdfast.farside.system.real_paths import real_path

LIBRARY = "libnvidia-ml.so.1"
TIMEOUT = 10.0
RUN_TIMEOUT = 3.0
"""Seconds that a run waits at most for a driver that does not answer, counted from the question."""
_GIB = float(1 << 30)
_SIGNS = ("proc/driver/nvidia/version", "dev/nvidiactl")
_FOLDERS = (
    "usr/lib/%(machine)s-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/lib/wsl/lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "run/opengl-driver/lib",
)
_INTEL, _AMD = "0x8086", "0x1002"
_MAKERS = {_INTEL: "Intel", _AMD: "AMD"}
_CONSOLES = ((_AMD, "0x515e"), (_AMD, "0x5969"))
"""They draw the console of a server, and compute nothing."""
_DISPLAY = "0x03"
_LISTS = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")

Report = Dict[str, Any]


def is_present(environment: Dict[str, str], root: str = "/") -> bool:
    """Whether there is a driver to ask. `HOLDFAST_NVML` names the library instead of all places where it may be; one
    that is not there stands for a machine without a driver."""
    named = environment.get("HOLDFAST_NVML")
    if named is not None:
        return os.path.exists(named)
    return any(os.path.exists(os.path.join(root, each)) for each in _SIGNS) or bool(library(environment, root))


def library(environment: Dict[str, str], root: str = "/") -> str:
    """The library's path, or an empty one."""
    named = environment.get("HOLDFAST_NVML")
    if named is not None:
        return named
    folders = [each for each in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if each]
    folders += [os.path.join(root, each % {"machine": os.uname().machine}) for each in _FOLDERS]
    return next((path for path in (os.path.join(each, LIBRARY) for each in folders) if os.path.exists(path)), "")


def ask(environment: Dict[str, str], timeout: float = TIMEOUT) -> Report:
    """At most `timeout` seconds and a moment."""
    if not is_present(environment):
        return no_driver()
    try:
        reader = start(environment)
    except CannotStart as problem:
        return failed(str(problem))
    collect([reader], timeout)
    return report_of(reader, timeout)


def start(environment: Dict[str, str]) -> Program:
    """Begin to ask, where `is_present`. Raises CannotStart."""
    return Program([sys.executable, "-I", "-S", ENTRY, "gpus"], environment)


def report_of(reader: Program, timeout: float) -> Report:
    """What the reader has said until now: its last whole line. A library may have printed something of its own."""
    lines = [line.strip() for line in reader.text().split("\n")[:-1] if line.strip()]
    for line in reversed(lines):
        report: Report = foreign.mapping(foreign.parsed(line)) if line.startswith('{"state"') else {}
        if report:
            if report["state"] == TIMED_OUT and reader.is_done:
                return dict(report, state=FAILED, problem="the driver ended the process that asked it")
            if report["state"] == TIMED_OUT:
                report["problem"] = "%s within %g s" % (report.get("problem", ""), timeout)
            return report
    if not reader.is_done:
        return dict(_empty(TIMED_OUT), problem="the driver does not answer within %g s" % timeout)
    return failed(lines[-1] if lines else "the process that asks NVML ended without a word")


def no_driver() -> Report:
    return _empty(NO_DRIVER)


def failed(problem: str, code: Optional[int] = None) -> Report:
    return dict(_empty(FAILED), problem=problem, code=code)


def _empty(state: str) -> Report:
    return {"state": state, "problem": "", "code": None, "driver": None, "cuda": None, "devices": []}


class DriverQuestion:
    """Begins to ask when it is made, beside what a supervisor does meanwhile. `note` tells people what went wrong: none
    of it ends the run."""

    def __init__(self, attendant: Attendant, note: Callable[[str], None]) -> None:
        self._attendant, self._note = attendant, note
        self._reader: Optional[Program] = None
        self.report = no_driver()
        """What is known of the GPUs once `hear` was called."""
        self.abandoned: Set[int] = set()
        """A reader that even SIGKILL did not end: the driver holds it, and nothing may wait for it."""
        environment = inherited_environment()
        if is_present(environment):
            try:
                self._reader = start(environment)
                attendant.tell_helper(self._reader.pid)
            except CannotStart as problem:
                note("The GPUs could not be looked at: %s." % problem)

    def hear(self, wait: Callable[[float], None], timeout: float = RUN_TIMEOUT) -> None:
        """Until there is a report, at the latest `timeout` seconds after the question. `wait` returns early when a
        child has ended, and may raise."""
        reader = self._reader
        if reader is None:
            return
        reader.take()
        while not reader.is_done and reader.seconds_left(timeout) > 0:
            wait(reader.seconds_left(timeout))
            reader.take()
        self.report = report_of(reader, timeout)
        self.end()
        for sentence in problems(self.report):
            self._note(sentence)

    def end(self) -> None:
        """Leave no process behind. A repeat changes nothing."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        deadline = time.monotonic() + BRIEFLY
        if reader.pid not in self._attendant.exits:
            reader.kill()  # what it had to say has been taken
        while reader.pid not in self._attendant.exits and time.monotonic() < deadline:
            self._attendant.wait(max(0.0, deadline - time.monotonic()), None)
        if reader.pid not in self._attendant.exits:
            self.abandoned.add(reader.pid)


def header(report: Report, uuids: Optional[Sequence[str]] = None) -> bytes:
    """The devices at the start of a run's output, in the form that people look for: five lines for each, or for each of
    its MIG instances. `uuids`: of these alone."""
    found = []
    for device in report["devices"]:
        if device["state"] == OK:
            parts = [each for each in device["instances"] or [device] if uuids is None or each["uuid"] in uuids]
            found += [_block(device, each) for each in parts]
    return "".join(found).encode("utf-8", "replace")


def problems(report: Report) -> List[str]:
    if report["state"] == TIMED_OUT:
        return ["The GPUs were not waited for: %s." % report["problem"]]
    if report["state"] == FAILED:
        return ["The GPUs could not be looked at: %s." % str(report["problem"]).rstrip(".")]
    return [
        "GPU %d (%s) does not work: %s." % (each["index"], each["name"] or "unknown", each["problem"] or each["state"])
        for each in report["devices"]
        if each["state"] != OK
    ]


def _block(device: Dict[str, Any], part: Dict[str, Any]) -> str:
    major, minor = device["capability"] or ("unknown", "unknown")
    clock = device["memory_clock_max"]
    rate = "unknown" if clock is None else "%.4g" % (clock / 1000.0)
    return (
        "name: %s\n" % (part["name"] or device["name"] or "unknown")
        + "major: %s minor: %s memoryClockRate (GHz) %s\n" % (major, minor, rate)
        + "pciBusID %s\n" % (device["pci"] or "unknown")
        + "Total memory: %s\n" % _gibibytes(part["memory_total"])
        + "Free memory: %s\n" % _gibibytes(part["memory_free"])
    )


def _gibibytes(count: Any) -> str:
    return "unknown" if count is None else "%.2fGiB" % (count / _GIB)


def name_others(
    root: str = "/", platform: str = sys.platform, ask: Optional[Callable[[], str]] = None
) -> List[Tuple[str, str]]:
    """PCI addresses and names of GPUs that are not NVIDIA's. `ask` says what a Mac's processor is called."""
    if platform == "darwin":
        chip = (ask or _chip)()
        return [("", chip)] if chip.startswith("Apple") else []
    return sorted(_cards(root).items())


def _cards(root: str) -> Dict[str, str]:
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
        pci = os.path.basename(real_path(device))
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
