"""Where the Pythons of a run are: each is asked by a signal that its `sitecustomize` (`shim/`) has taught it, and
writes the stacks of its threads to the run's file. For a run that hangs; nothing that it does is changed by it."""

import errno
import fcntl
import os
import signal
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from holdfast.farside.run.liveness import adjudicate, elsewhere, is_alive
from holdfast.farside.system import lost_locks, processes
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.launcher_lock import launcher_of
from holdfast.farside.system.layout import (
    GUARDIAN_BYTE,
    GUARDIAN_NAME,
    INSIDE,
    KEEPER_NAME,
    LOCK,
    READER_NAME,
    SAMPLER_NAME,
    STACKS,
    SUPERVISOR_BYTE,
    Home,
)
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.processes import Process
from holdfast.farside.system.refusal import Refused

BELOW_MAXIMUM = 4
"""The signal is SIGRTMAX minus this, as in `shim/sitecustomize.py`: it ends a process that does not know it."""
NUMBER = signal.SIGRTMAX - BELOW_MAXIMUM
LARGEST_FILE, _LARGEST_STACK = 4 << 20, 128 << 10
FIRST_WORD, LAST_WORD, IN_ALL = 1.0, 3.0, 20.0
"""Seconds: until a process begins to answer, for its whole answer, for all processes."""
QUIET, PAUSE = 0.05, 0.5
"""Seconds since its last line: where that ends the stack of a main thread, which comes last; and where it does not, so
that on a busy machine it may just have been interrupted."""
_SETTLING = 0.1
"""Seconds for a process that cannot be asked just now."""
PATIENCE = 5.0

_OURS = (GUARDIAN_NAME, READER_NAME, SAMPLER_NAME, KEEPER_NAME)
_ONE_DUMP = "Current thread 0x"
_OUTERMOST = b" in <module>\n"
_IN_THE_KERNEL = "It waits in the kernel"
_DEAF = (
    "This Python does not listen: it has just begun, or was started with -I, -E, -S or without the run's PYTHONPATH."
)


class ProcessStack(NamedTuple):
    """`stack` as Python writes it, or None and `why`."""

    process: Process
    command: str
    stack: Optional[str]
    why: str


def stacks(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Of the run's processes, parents first. Refused where there is no living process to ask."""
    folder, run = home.run(message["project"], message["run"]), str(message["run"])
    _require_alive(folder, run)
    found = _members(folder, run)
    with _File(os.path.join(folder, STACKS), run) as file:
        return {"processes": [_as_json(each) for each in ask(found, file)]}


def ask(found: List[Process], file: "_File") -> Iterator[ProcessStack]:
    """Asks one process after the other, so that what is written meanwhile is the answer of that process."""
    deadline = time.monotonic() + IN_ALL
    for process in found:
        command, stack, begin = _command(process), "", file.size()
        if time.monotonic() > deadline:
            why = "Not asked: the processes before it took too long to answer."
        else:
            why = _settled(process, file.key) or _signal(process)
        if not why:
            stack, why = file.answer(process, begin)
        yield ProcessStack(process, command, stack or None, why)


def hindrance(process: Process, key: Optional[Tuple[int, int]]) -> str:
    """Why it cannot be asked; empty if it can. The signal is never sent to a process that it would end, nor to one
    whose answer would go elsewhere."""
    now = processes.look(process.pid)
    if now is None or now.start != process.start or now.state in "ZX":
        return "It has ended."
    if now.state in "Tt":
        return "It is stopped%s." % (
            ", by a debugger" if now.state == "t" else "; continue it: kill -CONT %d" % now.pid
        )
    if now.state == "D":
        return "%s%s, where no signal reaches it." % (_IN_THE_KERNEL, _waits_in(now.pid))
    if not _catches(now.pid, NUMBER):
        return _DEAF if _is_python(now) else "It is not Python."
    try:
        if not _has_open(now.pid, key):
            return "It has closed the file that it would answer in." if _is_python(now) else "It is not Python."
    except PermissionError:
        return "It belongs to another account, or may not be looked at: nothing can be asked of it."
    except OSError:
        return "It has ended."
    if _catches(now.pid, NUMBER - 1) and _catches(now.pid, NUMBER + 1):
        return "It handles every signal itself, so it is not sent one."
    return "" if _catches(now.pid, NUMBER) else "It has just become another program."


def _settled(process: Process, key: Optional[Tuple[int, int]]) -> str:
    """As `hindrance`, which is its last look. A process that reads from a disk, or starts a program, is in the kernel
    for a moment only; and one that has just begun may be about to become another program."""
    deadline = time.monotonic() + _SETTLING
    while True:
        is_new = _age(process) < _SETTLING / 2
        why = hindrance(process, key)
        if time.monotonic() > deadline or not (why.startswith(_IN_THE_KERNEL) or (is_new and not why)):
            return why
        time.sleep(0.005)


class _File:
    """The file that processes write their stacks to, locked against other commands. `key` is None if the run has
    none."""

    def __init__(self, path: str, run: str) -> None:
        self._path, self._run = path, run
        self._descriptor = -1
        self.key: Optional[Tuple[int, int]] = None

    def __enter__(self) -> "_File":
        try:
            self._descriptor = open_plain(self._path, os.O_RDWR)
        except FileNotFoundError:
            return self
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ELOOP, errno.EISDIR):
                raise
            text = "`%s` is not a file: the script has put something else there."
            raise Refused("storage", text % self._path) from error
        found = os.fstat(self._descriptor)
        self.key = (found.st_dev, found.st_ino)
        self._lock()
        if self.size() > LARGEST_FILE:
            os.ftruncate(self._descriptor, 0)  # all write at its end, wherever that is
        return self

    def __exit__(self, *_: Any) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def answer(self, process: Process, begin: int) -> Tuple[str, str]:
        """What was written since: the stack, or why there is none."""
        asked = grown = time.monotonic()
        size = begin
        while True:
            now = time.monotonic()
            if self.size() != size:
                size, grown = self.size(), now
            limit = grown + self._patience(size) if size != begin else asked + FIRST_WORD
            if now > min(limit, asked + LAST_WORD) or (size == begin and processes.look(process.pid) is None):
                break
            time.sleep(0.005)
        begin = begin if size >= begin else 0
        text = os.pread(self._descriptor, min(size - begin, _LARGEST_STACK), begin).decode("utf-8", "replace")
        if text.count(_ONE_DUMP) > 1:
            return text, "A process before it answered late: its stacks are among these."
        if text:
            return text, ""
        if processes.look(process.pid) is None:
            return "", "It ended before it answered."
        if _has(process.pid, b"SigBlk:", NUMBER):
            return "", "It blocks the signal by which it is asked."
        return "", "It did not answer within a second."

    def _patience(self, size: int) -> float:
        end = os.pread(self._descriptor, len(_OUTERMOST), max(0, size - len(_OUTERMOST)))
        return QUIET if end == _OUTERMOST else PAUSE

    def _lock(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    return  # a disk that has no locks: two who ask at once are rare
            if time.monotonic() > deadline:
                os.close(self._descriptor)
                raise Refused("busy", "Another command asks for the stacks of `%s`." % self._run, "Try again.")
            time.sleep(0.02)


def _require_alive(folder: str, run: str) -> None:
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % run)
    adjudicate(folder)
    if elsewhere(folder):
        about = (run, elsewhere(folder), os.uname().nodename)
        hint = "Attach the machine by its own name, so that it is the one that is asked."
        raise Refused("elsewhere", "The run `%s` is on `%s`, and `%s` answers." % about, hint)
    if not is_alive(folder):
        raise Refused("ended", "The run `%s` has ended: it has no processes." % run)


def _members(folder: str, run: str) -> List[Process]:
    """The script's processes: below the guardian or, in a container, below the launcher."""
    from holdfast.farside.containers.removal import planned

    lock = os.path.join(folder, LOCK)
    supervisor = lost_locks.holder(lock, SUPERVISOR_BYTE)
    if planned(folder) is None:
        root = lost_locks.holder(lock, GUARDIAN_BYTE) or supervisor
    else:
        root = launcher_of(os.path.join(folder, INSIDE))
    if root == 0:
        raise Refused("refused", "The processes of `%s` cannot be seen from where Holdfast runs on this host." % run)
    found = members(root, supervisor) if root else []
    if not found:
        raise Refused(
            "not-ready",
            "The run `%s` has no process of its own now: its script has not begun, or has just ended." % run,
            "Where it is: holdfast status -r %s" % pasted(run),
        )
    return found


def members(root: int, supervisor: Optional[int]) -> List[Process]:
    """Living descendants, each before what is below it, without Holdfast's own and runs that the script started."""
    children, found, waiting = processes.all_children(), [], [root]
    while waiting:
        pid = waiting.pop()
        process = processes.look(pid)
        if process is None or (process.name in _OURS and pid != root):
            continue
        if pid not in (root, supervisor) and process.state not in "ZX":
            found.append(process)
        waiting.extend(sorted(children(pid), reverse=True))
    return found


def _signal(process: Process) -> str:
    try:
        os.kill(process.pid, NUMBER)
    except PermissionError:
        return "It belongs to another account: it may not be sent a signal."
    except OSError:
        return "It has ended."
    return ""


def _age(process: Process) -> float:
    """Seconds since it was forked."""
    try:
        with open("/proc/uptime") as source:
            return float(source.read().split()[0]) - int(process.start) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def _catches(pid: int, number: int) -> bool:
    return _has(pid, b"SigCgt:", number)


def _has(pid: int, mask: bytes, number: int) -> bool:
    try:
        with open("/proc/%d/status" % pid, "rb") as source:
            lines = source.read().split(b"\n")
    except OSError:
        return False
    found = [int(line.split()[1], 16) for line in lines if line.startswith(mask)]
    return bool(found) and bool(found[0] >> (number - 1) & 1)


def _has_open(pid: int, key: Optional[Tuple[int, int]]) -> bool:
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            found = os.stat("/proc/%d/fd/%s" % (pid, name))
        except FileNotFoundError:
            continue
        if (found.st_dev, found.st_ino) == key:
            return True
    return False


def _is_python(process: Process) -> bool:
    try:
        program = os.readlink("/proc/%d/exe" % process.pid)
    except OSError:
        program = _command(process).split(" ")[0]
    return "python" in os.path.basename(program) or "pypy" in os.path.basename(program)


def _waits_in(pid: int) -> str:
    try:
        with open("/proc/%d/wchan" % pid) as source:
            place = source.read().strip()
    except OSError:
        return ""
    return "" if place in ("", "0") else " (%s)" % place


def _command(process: Process) -> str:
    try:
        with open("/proc/%d/cmdline" % process.pid, "rb") as source:
            words = source.read(4096).rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode("utf-8", "replace") for word in words)


def _as_json(answer: ProcessStack) -> Dict[str, Any]:
    process = answer.process
    return {
        "pid": process.pid,
        "name": process.name,
        "command": answer.command,
        "state": process.state,
        "stack": answer.stack or "",
        "why": answer.why,
    }
