"""What a supervisor has from its guardian: the run's control group, and where it says which processes are its own."""

import os
from typing import Dict, NamedTuple, Set

from holdfast.farside.run.run_group import RunGroup
from holdfast.farside.system import processes


class Helpers:
    """Processes that a supervisor started for itself, by pid and start time: any process may take their names. They go
    through a pipe that no program inherits, so that the guardian knows them when the supervisor is dead."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._known: Dict[int, str] = {}

    def add(self, pid: int) -> None:
        process = processes.look(pid)
        if process is not None:
            try:
                os.write(self._writer, b"%d %s\n" % (pid, process.start.encode("ascii")))
            except OSError:
                pass  # no supervisor starts so many

    def pids(self) -> Set[int]:
        """For the guardian: those that live."""
        try:
            for line in os.read(self._reader, 1 << 16).decode("ascii").splitlines():
                pid, start = line.split()
                self._known[int(pid)] = start
        except OSError:
            pass
        found = (processes.look(pid) for pid in self._known)
        return {each.pid for each in found if each is not None and each.start == self._known[each.pid]}


class FromGuardian(NamedTuple):
    """`entered` is a pipe that ends when the supervisor is in the group."""

    group: RunGroup
    helpers: Helpers
    entered: int

    def wait(self) -> None:
        """Before the first program of the user's: what was started earlier would be outside."""
        os.read(self.entered, 1)
