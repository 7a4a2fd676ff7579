"""What all steps of a run share: its journal, waiting while requests to stop are heard, and the end of processes."""

import os
import signal
from typing import Callable, List, Optional, Set

from holdfast.farside.environments.workshop import Supervision
from holdfast.farside.run.guarded import FromGuardian
from holdfast.farside.system import foreign, processes
from holdfast.farside.system.children import Attendant, Exit, Signals, Stop
from holdfast.farside.system.files import read_record
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import CANCEL, JOURNAL, RESERVE, Home
from holdfast.farside.system.output import Pump
from holdfast.farside.system.processes import other_guardians

BRIEF_GRACE = 2.0
_LEFT_FOR_THE_END = 16384
_TAKEN = "Something removed files of this run. Holdfast restored its own; the script's may be lost."


class Stopped(Exception):
    """The run is to end before its command was started."""


class Attendance:
    """`helpers` are processes that the supervisor itself started, `monitors` those of a container's engine: none is
    ended with the run's. `tells_swept`: what had to be ended was the user's."""

    def __init__(self, home: Home, folder: str, grace: float, from_guardian: FromGuardian) -> None:
        self.home, self.folder = home, folder
        self.journal = JournalWriter(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE), keeps=True)
        signals = Signals((signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        self.attendant = Attendant(signals, grace, self._cancel_request, self._keep, from_guardian.helpers.add)
        self.keepers: List[Callable[[], None]] = []
        """Called when the guardian has looked at the run's files."""
        self.group, self.enter = from_guardian.group, from_guardian.wait
        self.helpers: Callable[[], Set[int]] = set
        self.monitors: Callable[[], Set[int]] = set
        self.tells_swept = True

    def supervision(self) -> Supervision:
        """What the makers of environments and containers are lent."""
        return Supervision(
            self.folder, self._attend, self._sweep_briefly, self.check_stop, self.wait, self.journal.append, self.enter
        )

    def hear_earlier_cancel(self) -> None:
        """One that was asked for before there was a supervisor to hear it."""
        if os.path.lexists(os.path.join(self.folder, CANCEL)):
            self.attendant.stop = self._cancel_request()

    def check_stop(self) -> None:
        self.wait(0)

    def wait(self, seconds: float) -> None:
        self.attendant.wait(seconds, None)
        if self.attendant.stop is not None:
            raise Stopped()

    def sweep(self, grace: float, pump: Optional[Pump] = None) -> None:
        """End every process of the run."""

        def own() -> Set[int]:
            return self.helpers() - set(self.attendant.exits)

        def spared() -> Set[int]:
            return other_guardians(self.home, self.folder) | self.monitors()

        def kill() -> None:
            """From outside of the group, in which this process is."""
            self.group.leave({os.getpid()} | own())
            self.group.kill(spared)
            self.group.enter(os.getpid())

        rules = processes.SweepRules(spared, own, kill)
        ended = processes.sweep(grace, lambda seconds: self.attendant.wait(seconds, pump), rules)
        if ended and self.tells_swept:
            self.journal.append("swept", processes=[list(each) for each in ended[:100]], count=len(ended))

    def finish_output(self, pump: Pump) -> None:
        """Writes the last output. On a full disk it uses the reserve; what does not fit waits for room until
        `cancel`."""
        pump.move()
        if pump.blocked:
            self.journal.shrink_reserve(_LEFT_FOR_THE_END)
            pump.move()
        if pump.blocked:
            self.journal.append("note", text="The disk is full; the last output waits for room.")
        while pump.blocked and self.attendant.stop is None:
            self.attendant.wait(1.0, pump)
        lost = pump.finish()
        if lost:
            self.journal.append("note", text="%d bytes of output were lost because the disk is full." % lost)

    def tell_stopping(self, stop: Stop) -> None:
        self.journal.append("ending", cause=stop.cause, grace=self.attendant.grace, detail=stop.detail)

    def _attend(self, pid: int, pump: Pump) -> Exit:
        self.attendant.expect(pid)
        return self.attendant.attend(pid, pump, None, self.tell_stopping)

    def _sweep_briefly(self) -> None:
        self.sweep(BRIEF_GRACE)

    def _keep(self) -> None:
        for keep in self.keepers:
            keep()
        if self.journal.keep():
            self.journal.append("note", text=_TAKEN)

    def _cancel_request(self) -> Optional[Stop]:
        request = read_record(os.path.join(self.folder, CANCEL))
        if request is None:
            return None
        if request.get("grace") is not None:
            self.attendant.grace = max(0.0, foreign.number(request["grace"]))
        return Stop("cancel", str(request.get("detail", "")))
