"""Starting one process of a run and waiting for it, while output, signals and deadlines are attended to.

The supervisor runs everything through here: the steps that build an environment and the script itself.
"""

import errno
import os
import select
import signal
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.system import kernel
from holdfast.farside.system.output import Pump


class Exit(NamedTuple):
    code: Optional[int]
    signal: Optional[int]


class Signals:
    """Those that are named, and the ends of children, as bytes in a pipe, so that one `poll` waits for them together
    with everything else."""

    def __init__(self, numbers: Sequence[int]) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self.descriptor = reader
        signal.set_wakeup_fd(writer)
        for number in [signal.SIGCHLD, *numbers]:
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def arrived(self) -> List[int]:
        try:
            return list(os.read(self.descriptor, 4096))
        except BlockingIOError:
            return []


def ended_children() -> Iterator[Tuple[int, Exit]]:
    """Each is told once."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if os.WIFSIGNALED(status):
            yield pid, Exit(None, os.WTERMSIG(status))
        elif os.WIFEXITED(status):
            yield pid, Exit(os.WEXITSTATUS(status), None)


def forget_signals() -> None:
    """Every signal does what it does to a new program."""
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass


OLD_LOCALE = "HOLDFAST_OLD_LOCALE"
"""Set by `main.py` where it had to change the locale for itself."""
LONGEST_WAIT = 86400.0
"""Seconds; `poll` takes no more than 24 days. A longer wait comes round again."""


class CannotStart(Exception):
    """The program could not be executed; the message says why."""


class Stop(NamedTuple):
    """Why a run is being ended before its script ended by itself."""

    cause: str
    detail: str
    signal: Optional[int] = None


class Watchdog:
    """Looks now and then whether a script that runs should be ended: `due` is when, by `time.monotonic`."""

    due: Optional[float] = None

    def look(self) -> Optional[Stop]:
        raise NotImplementedError


def spawn(
    argv: List[str],
    environment: Dict[str, str],
    directory: str,
    output: int,
    source: Optional[int] = None,
    errors: Optional[int] = None,
) -> int:
    """Start a program in a session of its own, output to the pipe, and its errors to one of their own if there is
    one. Its stdin is `source`, or /dev/null. Returns its pid."""
    parent = os.getpid()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            kernel.die_with_parent(signal.SIGKILL, parent)
            os.dup2(os.open(os.devnull, os.O_RDONLY) if source is None else source, 0)
            os.dup2(output, 1)
            os.dup2(output if errors is None else errors, 2)
            forget_signals()
            os.chdir(directory)
            os.execvpe(argv[0], argv, environment)  # noqa: S606 - there is no shell on purpose
        except BaseException as error:  # noqa: BLE001 - the parent is told whatever it is
            os.write(tell, str(_explain(error, argv[0], directory)).encode("utf-8", "replace"))
        finally:
            os._exit(127)
    os.close(tell)
    problem = b""
    try:
        while True:
            data = os.read(told, 4096)
            if not data:
                break
            problem += data
    finally:
        os.close(told)
    if problem:
        os.waitpid(pid, 0)
        raise CannotStart(problem.decode("utf-8", "replace"))
    return pid


def _nothing(pid: int) -> None:
    pass


class Attendant:
    """Waits for one main process of the run, and attends to output, cancel requests and the time limit meanwhile."""

    def __init__(
        self,
        signals: Signals,
        grace: float,
        stop_asked: Any,
        keep: Any = None,
        tell_helper: Callable[[int], None] = _nothing,
    ) -> None:
        """`keep`: what SIGHUP, which the guardian sends, asks for. `tell_helper` is called with each process that the
        supervisor starts for itself."""
        self._signals = signals
        self._stop_asked, self._keep = stop_asked, keep
        self.tell_helper, self.grace = tell_helper, grace
        self.stop: Optional[Stop] = None
        self.exits: Dict[int, Exit] = {}
        self.kill_at: Optional[float] = None

    def expect(self, pid: int) -> None:
        """Of a process that has just been started: an exit that is known under this pid is an earlier one's."""
        self.exits.pop(pid, None)

    def attend(
        self, pid: int, pump: Pump, time_limit: Optional[float], stopping: Any, watchdog: Optional[Watchdog] = None
    ) -> Exit:
        """Until `pid`, which is expected, ends. `stopping(stop)` is called once, when SIGTERM is about to be sent."""
        limit_at = None if time_limit is None else time.monotonic() + time_limit
        self.kill_at = None
        while pid not in self.exits:
            now = time.monotonic()
            if limit_at is not None and now >= limit_at and self.stop is None:
                self.stop = Stop("time-limit", "")
            if watchdog is not None and self.stop is None:
                self.stop = watchdog.look()
            if self.stop is not None and self.kill_at is None:
                stopping(self.stop)
                _kill(pid, signal.SIGTERM)
                self.kill_at, limit_at = now + self.grace, None
            again = None
            if self.kill_at is not None and now >= self.kill_at:
                _kill(pid, signal.SIGKILL)
                again = now + 1.0
            looks_at = None if watchdog is None or self.stop is not None else watchdog.due
            due = [moment for moment in (limit_at, again or self.kill_at, looks_at) if moment is not None]
            self.wait(min(due) - now if due else None, pump)
        return self.exits.pop(pid)

    def grace_left(self) -> float:
        """What is left of the grace time once the main process is gone, for the other processes of the run."""
        return 0.0 if self.kill_at is None else self.kill_at - time.monotonic()

    def wait(self, seconds: Optional[float], pump: Optional[Pump], others: Sequence[int] = ()) -> None:
        """Until something happens, at most `seconds`: output is moved, ended children are reaped, requests are
        noted. `others` are pipes of the caller's, which it reads itself."""
        poll = select.poll()
        poll.register(self._signals.descriptor, select.POLLIN)
        for other in others:
            poll.register(other, select.POLLIN)
        if pump is not None and pump.open and not pump.blocked:
            poll.register(pump.pipe, select.POLLIN)
        if pump is not None and pump.blocked:
            seconds = 1.0 if seconds is None else min(seconds, 1.0)
        poll.poll(None if seconds is None else _milliseconds(seconds))
        if pump is not None and pump.open:
            pump.move()
        arrived = self._signals.arrived()  # before reaping: a child that ends after that sends a signal that stays
        self._reap()
        if signal.SIGHUP in arrived and self._keep is not None:
            self._keep()
            if pump is not None:
                pump.keep()
        self._note(arrived)

    def _note(self, arrived: List[int]) -> None:
        if signal.SIGUSR1 in arrived:
            asked = self._stop_asked()  # may have shortened the grace time
            self.stop = self.stop or asked
            if self.kill_at is not None:
                self.kill_at = min(self.kill_at, time.monotonic() + self.grace)
        for number in (signal.SIGTERM, signal.SIGINT):
            if self.stop is None and number in arrived:  # an engine ends a run by it that is to be canceled
                self.stop = self._stop_asked() or Stop("stopped", "", number)

    def _reap(self) -> None:
        for pid, ended in ended_children():
            self.exits[pid] = ended


def _milliseconds(seconds: float) -> int:
    """Rounded up, so that no wait comes round again for a part of one; none to look and not wait."""
    return 0 if seconds <= 0 else int(min(seconds, LONGEST_WAIT) * 1000) + 1


def inherited_environment() -> Dict[str, str]:
    """What a process of the run inherits from this one: without what was set for the far side alone."""
    environment = dict(os.environ)
    environment.pop("HOLDFAST_PASSWORD", None)
    locale = environment.pop(OLD_LOCALE, None)
    if locale is not None:
        environment.pop("LC_ALL", None)
        if locale:
            environment["LC_ALL"] = locale
    return environment


def _kill(pid: int, number: int) -> None:
    """The main process is our unreaped child, so its pid cannot be another's."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _explain(error: BaseException, program: str, directory: str) -> str:
    if isinstance(error, FileNotFoundError) and os.path.isdir(directory):
        where = "on this machine" if "/" in program else "on the PATH of this run"
        return "there is no program `%s` %s" % (program, where)
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return "`%s` is not a program for this machine" % program
    return "`%s`: %s" % (program, getattr(error, "strerror", None) or error)
