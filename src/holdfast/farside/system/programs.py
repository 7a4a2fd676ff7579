"""Asking other programs: several at once, all that they print, and none is waited for longer than it was given."""

import os
import select
import signal
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from holdfast.farside.system.children import Exit, spawn
from holdfast.farside.system.output import make_pipe

BRIEFLY = 0.2
"""Seconds for a killed program to be gone. One that the kernel does not let go is left, and not waited for."""
_LONGER = 2.0
"""The same where nothing else has to be done."""
_MOST_OUTPUT = 16 << 20
_READS = 32
"""Of 64 KiB each at a time: more than a pipe holds."""
_GLANCE = 0.1
"""Between looks at whether it has ended while others hold its streams open."""


class Finished(NamedTuple):
    """How a program ended. `code` None: it was ended by us, since nothing came in time, or could not be started."""

    code: Optional[int]
    output: str
    errors: str

    @property
    def is_good(self) -> bool:
        return self.code == 0


class Attended(NamedTuple):
    """How a process that has other duties waits: `wait(seconds, descriptors)` returns early when one of them can be
    read or a child has ended, and may raise; children that have ended are in `exits`."""

    wait: Callable[[float, Sequence[int]], None]
    exits: Dict[int, Exit]


class Listener(NamedTuple):
    """`hear` gets each line of both streams as it comes; `tick` is called at least once a second, and after lines."""

    hear: Callable[[str], None]
    tick: Callable[[], None]


class Program:
    """One program that was started, without input, in a session of its own. Raises CannotStart. `is_done` when it has
    closed its output, as it does when it ends."""

    def __init__(self, argv: List[str], environment: Dict[str, str], is_apart: bool = False) -> None:
        """`is_apart`: what it says of errors is kept apart from its output."""
        pipes = [make_pipe() for _ in range(2 if is_apart else 1)]
        self.began = time.monotonic()
        try:
            self.pid = spawn(argv, environment, "/", pipes[0][1], None, pipes[-1][1])
        except BaseException:
            _close(*(reader for reader, _ in pipes))
            raise
        finally:
            _close(*(writer for _, writer in pipes))
        self._output, self._errors = pipes[0][0], pipes[-1][0]
        self._texts = {reader: b"" for reader, _ in pipes}
        self._heard = dict.fromkeys(self._texts, 0)
        self.readers = list(self._texts)
        for reader in self.readers:
            os.set_blocking(reader, False)

    @property
    def is_done(self) -> bool:
        return not self.readers

    def take(self) -> None:
        """Take what it has printed by now; not without end from one that never stops, so that its deadline is seen."""
        for reader in list(self.readers):
            for _ in range(_READS):
                try:
                    data = os.read(reader, 65536)
                except BlockingIOError:
                    break
                if not data:
                    self.readers.remove(reader)
                    os.close(reader)
                    break
                self._texts[reader] = (self._texts[reader] + data)[:_MOST_OUTPUT]

    def text(self) -> str:
        return self._texts[self._output].decode("utf-8", "replace")

    def seconds_left(self, timeout: float) -> float:
        return self.began + timeout - time.monotonic()

    def kill(self) -> None:
        """End it and what it has started, without waiting. For a program that has not been reaped."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def answer(self, patience: float, attended: Optional[Attended], listener: Optional[Listener] = None) -> Finished:
        """When it has ended. One that is late is killed, and its answer has no code."""
        deadline = time.monotonic() + patience
        ended: Optional[Exit] = None
        try:
            while ended is None and time.monotonic() < deadline:
                self._wait(deadline - time.monotonic(), attended)
                ended = self._exit(attended)
                self.take()
                if listener is not None:
                    self._tell(listener, ended is not None)
        finally:
            if ended is None:
                self.kill()
                _until(lambda: self._exit(attended) is not None, _LONGER)
            _close(*self.readers)
            self.readers = []
        errors = self._texts[self._errors].decode("utf-8", "replace")
        if ended is None:
            errors += "\nit did not answer within %d s" % patience
        code = None if ended is None else 128 + ended.signal if ended.signal is not None else ended.code
        return Finished(code, self.text(), errors)

    def _wait(self, left: float, attended: Optional[Attended]) -> None:
        seconds = max(0.0, min(left, 1.0 if self.readers else 0.001))
        if attended is not None:
            attended.wait(seconds, self.readers)
        elif self.readers:
            _poll(self.readers, min(seconds, _GLANCE))
        else:
            time.sleep(seconds)

    def _exit(self, attended: Optional[Attended]) -> Optional[Exit]:
        if attended is not None and self.pid in attended.exits:
            return attended.exits.pop(self.pid)
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return None  # the one that attends has reaped it, and says so
        if pid == 0:
            return None
        return Exit(None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else Exit(os.WEXITSTATUS(status), None)

    def _tell(self, listener: Listener, is_over: bool) -> None:
        for reader, text in self._texts.items():
            whole = len(text) if is_over else text.rfind(b"\n") + 1
            lines, self._heard[reader] = text[self._heard[reader] : whole], whole
            for line in lines.decode("utf-8", "replace").splitlines():
                listener.hear(line)
        listener.tick()


def collect(programs: List[Program], timeout: float) -> None:
    """Until all are done or `timeout` seconds have passed since each began; what is late is killed, and its `is_done`
    stays False."""
    while True:
        waiting = [each for each in programs if not each.is_done and each.seconds_left(timeout) > 0]
        if not waiting:
            break
        least = min(each.seconds_left(timeout) for each in waiting)
        _poll([reader for each in waiting for reader in each.readers], least)
        for each in waiting:
            each.take()
    for each in programs:
        if not each.is_done:
            each.kill()
    left = [each.pid for each in programs]

    def are_gone() -> bool:
        left[:] = [pid for pid in left if not _is_reaped(pid)]
        return not left

    _until(are_gone, BRIEFLY)


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _until(is_true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.002)


def _poll(readers: Sequence[int], seconds: float) -> None:
    poll = select.poll()
    for reader in readers:
        poll.register(reader, select.POLLIN)
    poll.poll(int(seconds * 1000) + 1)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
