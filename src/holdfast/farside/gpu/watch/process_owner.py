"""Whose process it is that a driver names: the run's, another one, or one that this machine does not know.

The run's are the descendants of its guardian, what is in its container, and what carries its mark in the environment:
the generation, which a shell that a person opened in the run's surroundings does not have. A run that was started
inside the run has a guardian of its own, and what is below that one is not the run's. Only processes that a driver
names are looked up, each once: its answer is kept with its start time, and what was the run's stays the run's when the
process is gone, so that memory which it left can be told.
"""

import os
from typing import Dict, List, Optional, Tuple

from holdfast.farside.gpu.occupants import MPS_SERVER
from holdfast.farside.system import processes
from holdfast.farside.system.launcher_lock import launcher_of
from holdfast.farside.system.layout import GENERATION, GUARDIAN_BYTE, GUARDIAN_NAME, LOCK
from holdfast.farside.system.lost_locks import is_held_by
from holdfast.farside.system.processes import Process

OWN, OTHER, UNMATCHED = "own", "other", "unmatched"
_HIGHEST = 1000
"""Generations; no chain is as long, and one that is read while it changes must end."""


class Belonging:
    """`inside` is the folder in which the launcher of the run's container has its lock; it may not be there yet.
    `root` is /proc."""

    def __init__(self, guardian: int, generation: str, inside: Optional[str] = None, root: str = "/proc") -> None:
        self._root, self._inside = root, inside
        self._mark = ("%s=%s" % (GENERATION, generation)).encode("utf-8")
        self._guardian = self._look(guardian)
        self._launcher: Optional[Process] = None
        self._groups: Dict[str, str] = {}
        self._known: Dict[int, Tuple[str, str]] = {}

    def of(self, pid: int) -> str:
        process = self._look(pid)
        known = self._known.get(pid)
        if process is None:
            return UNMATCHED if known is None else known[1]
        if known is not None and known[0] == process.start:
            return known[1]
        self._find_launcher()
        answer = self._judge(process)
        if answer == OWN or not self._waits_for_launcher():
            self._known[pid] = (process.start, answer)
        return answer

    def _judge(self, process: Process) -> str:
        current = process
        for _ in range(_HIGHEST):
            if _is_same(current, self._guardian) or _is_same(current, self._launcher):
                return OWN
            if current.name == GUARDIAN_NAME and is_held_by(current.pid, LOCK, GUARDIAN_BYTE, self._root):
                return OTHER
            above = self._look(current.parent) if current.parent > 0 else None
            if above is None:
                break
            current = above
        if self._is_in_container(process.pid) or self._is_marked(process.pid):
            return OWN
        # What computes through the server of MPS is named besides it, and that may be the run.
        return UNMATCHED if process.name.startswith(MPS_SERVER) else OTHER

    def _look(self, pid: int) -> Optional[Process]:
        return processes.look(pid, self._root)

    def _find_launcher(self) -> None:
        """The kernel says who holds the lock, in numbers of this pid namespace: Docker need not be asked."""
        if self._launcher is not None or self._inside is None:
            return
        if os.path.isdir(self._inside):
            self._launcher = self._look(launcher_of(self._inside, self._root) or 0)
        if self._launcher is not None and self._guardian is not None:
            here = _groups(self._read(self._guardian.pid, "cgroup"))
            there = _groups(self._read(self._launcher.pid, "cgroup"))
            # one that the guardian is in as well tells nothing
            self._groups = {name: path for name, path in there.items() if not _is_below(here.get(name, path), path)}

    def _waits_for_launcher(self) -> bool:
        return self._launcher is None and self._inside is not None and os.path.isdir(self._inside)

    def _is_in_container(self, pid: int) -> bool:
        if not self._groups:
            return False
        found = _groups(self._read(pid, "cgroup"))
        return all(_is_below(found.get(name, ""), path) for name, path in self._groups.items())

    def _is_marked(self, pid: int) -> bool:
        return self._mark in self._read(pid, "environ").split(b"\0")

    def _read(self, pid: int, name: str) -> bytes:
        """Empty if the process is gone or belongs to a user who does not let others read it."""
        try:
            descriptor = os.open("%s/%d/%s" % (self._root, pid, name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        portions: List[bytes] = []
        try:
            while not portions or portions[-1]:
                portions.append(os.read(descriptor, 65536))
        except OSError:
            pass
        finally:
            os.close(descriptor)
        return b"".join(portions)


def _is_same(process: Process, known: Optional[Process]) -> bool:
    """A later process with the same pid is another one."""
    return known is not None and (process.pid, process.start) == (known.pid, known.start)


def _groups(text: bytes) -> Dict[str, str]:
    """Paths by controllers, which have no name in version 2 of control groups."""
    found = {}
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found[controllers] = path
    return found


def _is_below(path: str, base: str) -> bool:
    return path == base or path.startswith(base.rstrip("/") + "/")
