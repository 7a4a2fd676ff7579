"""Looks now and then, while a script runs, whether the GPUs still work for it: a run that was to be ended when they do
not, and one that neither prints nor computes any more."""

import os
import time
from typing import Callable, List, Optional

from holdfast.farside.gpu.gpu_facts import GpuFacts
from holdfast.farside.gpu.judge.evidence import FEWEST_LOOKS, idle_for, is_on, patience
from holdfast.farside.gpu.samples import Following, Samples, Tick, period
from holdfast.farside.system import children
from holdfast.farside.system.children import Stop
from holdfast.farside.system.clock import WALL, Clock
from holdfast.farside.system.layout import OUTPUT, SAMPLES

GPU_IDLE = "gpu-idle"
_SHORTEST, LONGEST = 0.5, 60.0
"""Seconds between looks; a tenth of what is waited for."""
_UNJUDGED = 30.0
"""Seconds after which it is said that nothing can be judged here."""
_FAULTS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


class GpuWatchdog(children.Watchdog):
    """The supervisor calls `look` while it waits for the script, at the latest at `due`, a time of `time.monotonic`."""

    def __init__(
        self, folder: str, facts: GpuFacts, run: str, note: Callable[[str], None], clock: Clock = WALL
    ) -> None:
        """`clock` is the run's."""
        self._folder, self._facts, self._run, self._note = folder, facts, run, note
        self._clock = clock
        self._started = self._spoke = self._clock.now()
        self._said = 0
        request = facts.request
        limits = [each for each in (request.stop_if_idle, request.quiet_after) if each]
        self._longest = max(limits, default=0.0)
        self._following = Following(os.path.join(folder, SAMPLES))
        self._newest = 0.0
        self._witness: List[Tick] = []
        self._has_ours = False
        self._matters = request.asked or bool(request.stop_if_idle)
        self._pause = min(LONGEST, max(_SHORTEST, min(limits) / 10)) if limits else None
        self._quiet_since: Optional[float] = None
        self._has_said_unjudged = False
        self.due: Optional[float] = None if self._pause is None else time.monotonic() + self._pause

    def look(self) -> Optional[Stop]:
        """Why the run is to end, if it is. What else is noticed is told."""
        if self.due is None or self._pause is None or time.monotonic() < self.due:
            return None
        self.due = time.monotonic() + self._pause
        try:
            return self._judge(self._clock.now())
        except _FAULTS:  # files that are damaged, or a note that has no room: no run ends for that
            return None

    def _judge(self, now: float) -> Optional[Stop]:
        samples = self._lately(now)
        idle = idle_for(samples, self._facts, self._started, now)
        if idle is None:
            self._tell_unjudged(now)
            return None
        self._notice_quiet(idle, now)
        limit = self._facts.request.stop_if_idle
        enough = FEWEST_LOOKS * period(now - (samples.began or self._started))  # a single look ends no run
        if limit and idle >= max(limit, enough):
            return Stop(GPU_IDLE, "It computed nothing for %s." % _minutes(limit))
        return None

    def _lately(self, now: float) -> Samples:
        """As much as is needed to tell whether a limit is reached, whatever the age of the run; and one look that named
        a process, which proves for all others that they would be named."""
        self._following.read_on()
        samples = self._following.samples()
        for tick in samples.ticks:
            if tick.time > self._newest:
                self._notice(tick)
        begin = now - self._longest - 2 * patience(samples, self._started, now)
        self._following.forget(begin)
        ticks = [each for each in samples.ticks if each.time >= begin]
        witness = [each for each in self._witness if each.time < begin]
        return samples._replace(ticks=tuple(witness + ticks))

    def _notice(self, tick: Tick) -> None:
        self._newest = tick.time
        if tick.time < self._started:
            return
        is_ours = any(row.own for row in tick.rows)
        if is_ours or (not self._has_ours and any(row.others for row in tick.rows)):
            self._witness, self._has_ours = [tick], is_ours
        if not self._matters:
            self._matters = any(is_on(row) or (row.own_utilisation or 0) >= 1 for row in tick.rows)

    def _tell_unjudged(self, now: float) -> None:
        if self._facts.request.stop_if_idle and not self._has_said_unjudged and now - self._started > _UNJUDGED:
            self._has_said_unjudged = True
            self._note("Whether the GPU works for this run cannot be judged here, so --stop-if-idle does not end it.")

    def _notice_quiet(self, idle: float, now: float) -> None:
        """Of a run that is meant to use a GPU, or has used one. Others are not expected to."""
        limit = self._facts.request.quiet_after
        try:
            said = os.stat(os.path.join(self._folder, OUTPUT)).st_size
        except OSError:
            return
        if said != self._said:
            self._said, self._spoke = said, now
        if not limit or not self._matters or min(idle, now - self._spoke) < limit:
            return
        if self._quiet_since is None or self._spoke > self._quiet_since:  # once for each silence
            self._quiet_since = now
            text = "No output and no GPU work for %s. Where its Python is: holdfast experiment stacks -r %s"
            self._note(text % (_minutes(limit), self._run))


def _minutes(seconds: float) -> str:
    if seconds < 60:
        return "%g seconds" % seconds
    return "%g minute%s" % (round(seconds / 60, 1), "" if seconds == 60 else "s")
