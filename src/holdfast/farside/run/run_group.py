"""A run's control group. It holds every process that the script starts, even if that process leaves its parents or
clears its environment.

Only where the system gives one: version 2 of control groups, and a group of this account's own to make it in, such as a
scope of the user's service manager. The guardian stays outside. What may make such a group may also leave it, but that
does not happen by itself."""

import os
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from holdfast.farside.system import processes
from holdfast.farside.system.folders import walked
from holdfast.farside.system.processes import EndedProcess
from holdfast.farside.system.real_paths import real_path

NAME = "holdfast-"
ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
"""Where version 2 is mounted, alone or beside version 1."""
_PATIENCE = 5.0
"""Seconds for what was killed to be gone; a process that a device holds may stay."""
_LEAVING = 0.5
"""Seconds for a process that was killed to leave the group, so that the group can be removed."""


class RunGroup:
    """`path` is empty where there is none: then nothing happens, and nothing is in it."""

    def __init__(self, path: str = "") -> None:
        self.path = path

    def enter(self, pid: int) -> None:
        """Lets the process, and all that it starts from now on, be in the group. Where that fails there is none."""
        if self.path and not (_write(self.path, "cgroup.procs", pid) and _is_in(pid, self.path)):
            self.remove()
            self.path = ""

    def leave(self, pids: Set[int]) -> None:
        """Moves those that are in it to the group above it, as far as that is allowed."""
        for pid in pids & self.members():
            _write(os.path.dirname(self.path), "cgroup.procs", pid)

    def kill(self, spared: Callable[[], Set[int]]) -> None:
        """All that is in it, at once, also what is being forked; nothing if this process or one to spare is in it."""
        members = self.members()
        if members and os.getpid() not in members and not spared() & members:
            _write(self.path, "cgroup.kill", 1)

    def end(self, spared: Callable[[], Set[int]]) -> List[EndedProcess]:
        """Ends all that is in it but what is `spared`, and what is below that. Returns what it ended."""
        ended: Dict[Tuple[int, str], EndedProcess] = {}
        deadline = time.monotonic() + _PATIENCE
        while self.path:
            left, is_late = self._left(spared), time.monotonic() > deadline
            for process in filter(None, map(processes.look, left)):
                if process.state not in "ZX" and (is_late or processes.send(process, 9)):
                    how = "survived" if is_late else "SIGKILL"
                    ended[(process.pid, process.start)] = EndedProcess(process.pid, process.name, how)
            if is_late or not left:
                break
            self.kill(spared)
            time.sleep(0.002)
        return list(ended.values())

    def remove(self) -> None:
        """Of one that is empty: what was killed may be leaving it. It goes with the machine's restart in any case."""
        deadline = time.monotonic() + _LEAVING
        for folder in reversed(list(self._folders())):
            while not _is_removed(folder) and time.monotonic() < deadline:
                time.sleep(0.002)

    def members(self) -> Set[int]:
        """0 stands for those of other pid namespaces."""
        found: Set[int] = set()
        for folder in self._folders():
            found |= _procs(folder)
        return found

    def _left(self, spared: Callable[[], Set[int]]) -> Set[int]:
        members = self.members()
        kept = spared() & members if members else set()
        below = {each.pid for pid in kept for each in processes.descendants(pid, set)}
        return members - kept - below - {os.getpid()}

    def _folders(self) -> Iterator[str]:
        """It, and those that processes made in it."""
        return (folder for folder, _, _ in walked(self.path)) if self.path else iter(())


def make(generation: str) -> RunGroup:
    """A new one, beside that of the run in which this process is, if it is in one: that ends without this."""
    above = group_above()
    path = os.path.join(above, NAME + generation)
    try:
        if above:
            os.mkdir(path)
            return RunGroup(path)
    except OSError:
        pass
    return RunGroup()


def group_above() -> str:
    """The group of this process; in a run, the group above it. Empty where there is no version 2, and where
    another view of the groups is mounted: a process that is moved there loses its limits."""
    root = next((each for each in ROOTS if os.path.exists(os.path.join(each, "cgroup.procs"))), "")
    path = _path_of("self")
    if not root or path is None or os.getpid() not in _procs(root + path.rstrip("/")):
        return ""
    return root + path.split("/" + NAME)[0].rstrip("/")


def step_out() -> None:
    """Leave the group of the run whose script started this process, if it is in one."""
    above = group_above()
    if above and "/" + NAME in (_path_of("self") or ""):
        _write(above, "cgroup.procs", os.getpid())


def group_of(events: List[Dict[str, Any]]) -> RunGroup:
    """As a run's journal says. A script may write there too: only a group by the name of this run counts."""
    generation = next((str(event.get("generation")) for event in events if event["e"] == "created"), "")
    path = next((str(event["group"]) for event in events if event.get("group")), "")
    is_known = generation and os.path.basename(path) == NAME + generation and path.startswith(ROOTS)
    return RunGroup(path if is_known and real_path(path) == path and os.path.isdir(path) else "")


def _is_removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _procs(folder: str) -> Set[int]:
    try:
        with open(os.path.join(folder, "cgroup.procs")) as source:
            return {int(line) for line in source}
    except (OSError, ValueError):
        return set()


def _path_of(pid: str) -> Optional[str]:
    try:
        with open("/proc/%s/cgroup" % pid) as source:
            return next((line[3:].rstrip("\n") for line in source if line.startswith("0::/")), None)
    except OSError:
        return None


def _is_in(pid: int, path: str) -> bool:
    """By the process's own word: what is mounted may be another machine's view."""
    return (_path_of(str(pid)) or "").endswith("/" + os.path.basename(path))


def _write(folder: str, name: str, number: int) -> bool:
    try:
        descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, b"%d" % number)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True
