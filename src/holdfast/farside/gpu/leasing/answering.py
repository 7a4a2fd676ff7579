"""A driver that may need long to answer, as one does that sets up its devices, or never does."""

import time
from typing import Callable, Optional

from holdfast.farside.gpu.leasing.refusing import dumb, failing
from holdfast.farside.gpu.request import Request
from holdfast.farside.machine import gpus
from holdfast.farside.machine.gpus import Report

PATIENCE = 600.0
"""Seconds without an answer after which none is expected."""
NO_ANSWER = "the driver does not answer"


class Driver:
    """Of the machine on which `request` waits. `ask` asks it, for as long as one likes, and may raise."""

    def __init__(self, request: Request, ask: Callable[[], Report]) -> None:
        self._request, self._ask = request, ask
        self._since: Optional[float] = None

    def ask(self) -> Optional[Report]:
        """None where it has not answered yet. Refused where it fails, or has not answered for too long."""
        since = time.monotonic() if self._since is None else self._since
        return self._judge(self._ask(), since)

    def judge(self, report: Report) -> Optional[Report]:
        """The same of what it was asked before."""
        return self._judge(report, time.monotonic())

    def forget(self) -> None:
        """It is not asked for now, so its silence says nothing."""
        self._since = None

    def _judge(self, report: Report, since: float) -> Optional[Report]:
        if report["state"] == gpus.FAILED:
            raise failing(self._request, report)
        if report["state"] != gpus.TIMED_OUT:
            self._since = None
            return report
        self._since = since
        waited = time.monotonic() - since
        if waited >= PATIENCE:
            raise dumb(self._request, waited)
        return None
