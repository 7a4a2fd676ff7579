"""The devices at the start of a run's output, in the form that people look for; asked for while the run's files are
made."""

import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from holdfast.farside.machine import gpus
from holdfast.farside.system.children import Attendant, CannotStart, inherited_environment
from holdfast.farside.system.programs import BRIEFLY, Program

TIMEOUT = 3.0
"""Seconds that a run waits at most for a driver that does not answer, counted from the question."""
GIB = float(1 << 30)


class DeviceHeader:
    """Begins to ask when it is made. `note` tells people what went wrong: none of it ends the run."""

    def __init__(self, attendant: Attendant, note: Callable[[str], None]) -> None:
        self._attendant, self._note = attendant, note
        self._reader: List[Program] = []
        self.report: gpus.Report = gpus.no_driver()
        """What is known of the GPUs once `hear` was called."""
        self.abandoned: Set[int] = set()
        """A reader that even SIGKILL did not end: the driver holds it, and nothing may wait for it."""
        environment = inherited_environment()
        if gpus.is_present(environment):
            try:
                self._reader.append(gpus.start(environment))
            except CannotStart as problem:
                note("The GPUs could not be looked at: %s." % problem)

    def hear(self, wait: Callable[[float], None], timeout: float = TIMEOUT) -> None:
        """Until there is a report, at the latest `timeout` seconds after the question. `wait` returns early when a
        child has ended, and may raise."""
        if not self._reader:
            return
        reader = self._reader[0]
        reader.take()
        while not reader.is_done and reader.seconds_left(timeout) > 0:
            wait(reader.seconds_left(timeout))
            reader.take()
        report = self.report = gpus.report_of(reader, timeout)
        self.end()
        for sentence in problems(report):
            self._note(sentence)

    def end(self) -> None:
        """Leave no process behind. A repeat changes nothing."""
        for reader in self._reader:
            deadline = time.monotonic() + BRIEFLY
            if reader.pid not in self._attendant.exits:
                reader.kill()  # what it had to say has been taken
            while reader.pid not in self._attendant.exits and time.monotonic() < deadline:
                self._attendant.wait(max(0.0, deadline - time.monotonic()), None)
            if reader.pid not in self._attendant.exits:
                self.abandoned.add(reader.pid)
        self._reader = []


def lines(report: gpus.Report, uuids: Optional[Sequence[str]] = None) -> bytes:
    """Five lines for each device; of one that is cut into MIG instances, for each of those. `uuids`: of these alone."""
    found = []
    for device in report["devices"]:
        if device["state"] == "ok":
            parts = [each for each in device["instances"] or [device] if uuids is None or each["uuid"] in uuids]
            found += [_block(device, each) for each in parts]
    return "".join(found).encode("utf-8", "replace")


def problems(report: gpus.Report) -> List[str]:
    if report["state"] == gpus.TIMED_OUT:
        return ["The GPUs were not waited for: %s." % report["problem"]]
    if report["state"] == gpus.FAILED:
        return ["The GPUs could not be looked at: %s." % str(report["problem"]).rstrip(".")]
    return [
        "GPU %d (%s) does not work: %s." % (each["index"], each["name"] or "unknown", each["problem"] or each["state"])
        for each in report["devices"]
        if each["state"] != "ok"
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
    return "unknown" if count is None else "%.2fGiB" % (count / GIB)
