"""Looks now and then, while a script runs, whether the GPUs still work for it: a run that was to be ended when they do
not, and one that neither prints nor computes any more."""

import os
import time
from typing import Any, Callable, Optional

from holdfast.farside.gpu.judging.facts import Facts
from holdfast.farside.gpu.judging.idle import idle_for
from holdfast.farside.gpu.watching.samples import Samples, read
from holdfast.farside.layout import OUTPUT, SAMPLES
from holdfast.farside.run import children
from holdfast.farside.run.children import Stop

GPU_IDLE = "gpu-idle"
MOST_READ = 4 << 20
"""Of the samples, from their end: days of them."""
SHORTEST, LONGEST = 0.5, 60.0
"""Seconds between looks; a tenth of what is waited for."""
UNJUDGED = 30.0
"""Seconds after which it is said that nothing can be judged here."""


class Watchdog(children.Watchdog):
    """`look` is called by whoever waits for the script, at the latest at `due`, in the time of `time.monotonic`."""

    def __init__(self, folder: str, facts: Facts, run: str, note: Callable[[str], None]) -> None:
        self._folder, self._facts, self._run, self._note = folder, facts, run, note
        self._started = time.time()
        request = facts.request
        limits = [each for each in (request.stop_if_idle, request.quiet_after) if each]
        self._pause = min(LONGEST, max(SHORTEST, min(limits) / 10)) if limits else None
        self._quiet_since: Optional[float] = None
        self._has_said_unjudged = False
        self.due: Optional[float] = None if self._pause is None else time.monotonic() + self._pause

    def look(self) -> Optional[Stop]:
        """Why the run is to end, if it is. What else is noticed is told."""
        if self.due is None or self._pause is None or time.monotonic() < self.due:
            return None
        self.due = time.monotonic() + self._pause
        now = time.time()
        idle = idle_for(_tail(os.path.join(self._folder, SAMPLES)), self._facts, self._started, now)
        if idle is None:
            self._tell_unjudged(now)
            return None
        self._notice_quiet(idle, now)
        limit = self._facts.request.stop_if_idle
        if limit and idle >= limit:
            return Stop(GPU_IDLE, "It computed nothing for %s." % _minutes(limit))
        return None

    def _tell_unjudged(self, now: float) -> None:
        if self._facts.request.stop_if_idle and not self._has_said_unjudged and now - self._started > UNJUDGED:
            self._has_said_unjudged = True
            self._note("Whether the GPU works for this run cannot be judged here, so --stop-if-idle does not end it.")

    def _notice_quiet(self, idle: float, now: float) -> None:
        limit = self._facts.request.quiet_after
        try:
            spoke = os.stat(os.path.join(self._folder, OUTPUT)).st_mtime
        except OSError:
            return
        if not limit or min(idle, now - max(spoke, self._started)) < limit:
            return
        if self._quiet_since is None or spoke > self._quiet_since:  # once for each silence
            self._quiet_since = now
            text = "No output and no GPU work for %s. Where its Python is: holdfast experiment stacks -r %s"
            self._note(text % (_minutes(limit), self._run))


def _minutes(seconds: float) -> str:
    if seconds < 60:
        return "%g seconds" % seconds
    return "%g minute%s" % (round(seconds / 60, 1), "" if seconds == 60 else "s")


def _tail(path: str) -> Samples:
    """All that matters now, with the beginning, which names the devices."""
    try:
        with open(path, "rb") as source:
            size = os.fstat(source.fileno()).st_size
            data: Any = source.read(min(size, MOST_READ))
            if size > MOST_READ:
                data = b"\n".join(data.split(b"\n", 2)[:2]) + b"\n"
                source.seek(size - MOST_READ)
                source.readline()
                data += source.read()
    except OSError:
        return Samples()
    return read(data)
