"""The processes of a run: found as descendants of a subreaper, so that no double fork, new session or cleared
environment hides one; ended politely first, then for certain."""

import os
import signal
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from holdfast.farside.system import kernel
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import (
    ENGINE_NAMES,
    GUARDIAN_BYTE,
    GUARDIAN_NAME,
    LOCK,
    READER_NAME,
    SAMPLER_NAME,
    Home,
)
from holdfast.farside.system.lost_locks import LostLocks


class Process(NamedTuple):
    """`start` tells it from a later one with the same pid. `parent` is 0 for the first one of a machine, and for one
    whose parent is outside its container."""

    pid: int
    start: str
    name: str
    state: str
    parent: int


class EndedProcess(NamedTuple):
    """`signal` is what ended it: SIGTERM, SIGKILL, or `survived` for one that the kernel would not let go."""

    pid: int
    name: str
    signal: str


Spared = Callable[[], Set[int]]
"""Asked for only where there is one that is called like those that may be: `_SPARED_NAMES`."""
_SPARED_NAMES = (GUARDIAN_NAME, READER_NAME, SAMPLER_NAME, *ENGINE_NAMES)


def look(pid: int, root: str = "/proc") -> Optional[Process]:
    """The process as it is now; None when it is gone."""
    try:
        with open("%s/%d/stat" % (root, pid), "rb") as source:
            text = source.read().decode("utf-8", "replace")
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        return Process(pid, rest[19], name, rest[0], int(rest[1]))
    except (OSError, ValueError, IndexError):
        return None


def pids() -> List[int]:
    """Of all processes that can be seen from here."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def children(pid: int) -> List[int]:
    found: List[int] = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as source:
                found.extend(int(each) for each in source.read().split())
    except OSError:
        pass
    return found


def descendants(
    pid: int, spared: Spared, look_up: Callable[[int], List[int]] = children, own: Spared = set
) -> List[Process]:
    """Living descendants, parents first, without those that are `spared` and what is below them. Zombies do not count:
    they hold nothing and wait for their parent. `own` are the helpers that this process started itself: they are spared
    by their pid alone, since one that has just begun does not have its name yet."""
    found, waiting = [], look_up(pid)
    seen, helpers = set(), own()
    while waiting:
        each = waiting.pop(0)
        if each in seen:
            continue
        seen.add(each)
        process = look(each)
        if each in helpers or (process is not None and process.name in _SPARED_NAMES and each in spared()):
            continue
        if process is not None and process.state not in "ZX":
            found.append(process)
        waiting.extend(look_up(each))
    return found


def all_children() -> Callable[[int], List[int]]:
    """Children by the parent that every process names: slower than `children`, and right where the kernel's lists are
    not: they may miss a child while others come and go, and some kernels do not have them."""
    by_parent: Dict[int, List[int]] = {}
    for process in map(look, pids()):
        if process is not None:
            by_parent.setdefault(process.parent, []).append(process.pid)
    return lambda pid: by_parent.get(pid, [])


def send(process: Process, number: int) -> bool:
    """Signal exactly this process. The pid of a descendant cannot be reused while an ancestor has not reaped it."""
    now = look(process.pid)
    if now is None or now.start != process.start:
        return False
    try:
        os.kill(process.pid, number)
    except OSError:
        return False
    return True


class SweepRules(NamedTuple):
    """Which descendants to spare, and how to kill the rest at once where the system can."""

    spared: Spared = set
    own: Spared = set
    kill: Callable[[], None] = lambda: None


def sweep(grace: float, tick: Callable[[float], None], rules: SweepRules, patience: float = 20.0) -> List[EndedProcess]:
    """End every descendant of this process, which must be a subreaper. SIGTERM first, SIGKILL after `grace` seconds.

    `tick(seconds)` waits at most that long, reaps children and drains output; it returns early when a child ended.
    Returns what had to be ended; what is still there after `patience` more seconds is in the list as `survived`.
    """
    ended: Dict[Tuple[int, str], EndedProcess] = {}
    kill_at = time.monotonic() + grace
    give_up = kill_at + patience
    pause = 0.002
    while True:
        living = _living(rules.spared, rules.own)
        now = time.monotonic()
        if not living:
            return list(ended.values())
        if now > give_up:
            for process in living:
                ended[(process.pid, process.start)] = EndedProcess(process.pid, process.name, "survived")
            return list(ended.values())
        _signal_each(living, ended, kill=now >= kill_at)
        if now >= kill_at:
            rules.kill()
        tick(pause if now >= kill_at else min(max(kill_at - now, 0.001), 0.1))
        pause = min(pause * 1.5, 0.25)


def _living(spared: Spared, own: Spared) -> List[Process]:
    if not _has_children():
        return []
    me = os.getpid()
    return descendants(me, spared, children, own) or descendants(me, spared, all_children(), own)


def _has_children() -> bool:
    """By the kernel's own word, at once. A subreaper without children has no descendants: an orphan would be one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal_each(living: List[Process], ended: Dict[Tuple[int, str], EndedProcess], kill: bool) -> None:
    for process in living:
        key = (process.pid, process.start)
        if kill:
            if send(process, signal.SIGKILL):
                ended[key] = EndedProcess(process.pid, process.name, "SIGKILL")
        elif key not in ended and send(process, signal.SIGTERM):
            ended[key] = EndedProcess(process.pid, process.name, "SIGTERM")


def carrying(mark: bytes) -> List[Process]:
    """Processes of this user whose environment has `mark`: the last resort, for a run that lost guardian and
    supervisor."""
    found = []
    for pid in pids():
        if pid == os.getpid():
            continue
        try:
            with open("/proc/%d/environ" % pid, "rb") as source:
                if mark not in source.read().split(b"\0"):
                    continue
        except OSError:
            continue
        process = look(pid)
        if process is not None and process.state not in "ZX":
            found.append(process)
    return found


def other_guardians(home: Home, folder: str) -> Set[int]:
    """The pids of all guardians of this host but that of the run in `folder`. The lock proves what the name claims; it
    is held as before where a cleaner took its file."""
    lost = LostLocks()
    found = lost.holders_below(home.runs(), "/" + LOCK, GUARDIAN_BYTE) - {os.getppid()}
    for project in names_in(home.runs()):
        for run in names_in(os.path.join(home.runs(), project)):
            other = os.path.join(home.runs(), project, run)
            if other == folder:
                continue
            try:
                holder = kernel.lock_holder(os.path.join(other, LOCK), GUARDIAN_BYTE)
                found |= {holder} if holder else set()
            except OSError:  # a script has put something else there
                found |= lost.users(other, (GUARDIAN_BYTE,)) - {os.getppid()}
    return found
