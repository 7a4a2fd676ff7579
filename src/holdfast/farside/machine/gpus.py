"""The GPUs of this machine, asked for by a process of its own: a sick driver hangs its caller, for ever.

A report is a dict: `state` (`no-driver`, `ok`, `failed`, `timed-out`), `problem` in NVML's words, `code`, `driver`,
`cuda` and `devices`; what a device has is in `nvml.py`. Nothing is loaded or started where there is no NVIDIA driver.
"""

import json
import os
import sys
from typing import Any, Dict, Optional

from holdfast.farside.system.children import CannotStart
from holdfast.farside.system.layout import ENTRY
from holdfast.farside.system.programs import Program, collect

NO_DRIVER, OK, FAILED, TIMED_OUT = "no-driver", "ok", "failed", "timed-out"
LIBRARY = "libnvidia-ml.so.1"
TIMEOUT = 10.0
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
        if line.startswith('{"state"'):
            report: Report = json.loads(line)
            if report["state"] == TIMED_OUT and reader.is_done:
                return dict(report, state=FAILED, problem="the driver ended the process that asked it")
            if report["state"] == TIMED_OUT:
                report["problem"] += " within %g s" % timeout
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
