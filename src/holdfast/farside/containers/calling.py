"""One call of a program: its two streams kept apart, heard as they come, not waited for longer than it may take."""

import os
import select
import signal
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from holdfast.farside.containers.complaints import Answer
from holdfast.farside.run.children import spawn
from holdfast.farside.run.signals import Exit

BRIEFLY = 2.0
"""Seconds for a killed program to be gone."""
_GLANCE = 0.1
"""Between looks at whether it has ended while others hold its streams open."""


class Attended(NamedTuple):
    """How a process that has other duties waits: `wait(seconds, descriptors)` returns early when one of them can be
    read or a child has ended, and may raise; children that have ended are in `exits`."""

    wait: Callable[[float, Sequence[int]], None]
    exits: Dict[int, Exit]


class Listener(NamedTuple):
    """`hear` gets each line of both streams as it comes; `tick` is called at least once a second, and after lines."""

    hear: Callable[[str], None]
    tick: Callable[[], None]


class Call:
    """Raises CannotStart."""

    def __init__(self, argv: List[str], environment: Dict[str, str]) -> None:
        output, errors = os.pipe(), os.pipe()
        try:
            self.pid = spawn(argv, environment, "/", output[1], None, errors[1])
        except BaseException:
            _close(output[0], errors[0])
            raise
        finally:
            _close(output[1], errors[1])
        self._output, self._errors = output[0], errors[0]
        self._open = [self._output, self._errors]
        self._texts = dict.fromkeys(self._open, b"")
        self._heard = dict.fromkeys(self._open, 0)
        for descriptor in self._open:
            os.set_blocking(descriptor, False)

    def answer(self, patience: float, attended: Optional[Attended], listener: Optional[Listener] = None) -> Answer:
        """When it has ended. One that is late is killed, and its answer has no code."""
        deadline = time.monotonic() + patience
        ended: Optional[Exit] = None
        try:
            while ended is None and time.monotonic() < deadline:
                self._wait(deadline - time.monotonic(), attended)
                ended = self._exit(attended)
                self._take()
                if listener is not None:
                    self._tell(listener, ended is not None)
        finally:
            if ended is None:
                self._kill(attended)
            _close(*self._open)
        errors = self._texts[self._errors].decode("utf-8", "replace")
        if ended is None:
            errors += "\nit did not answer within %d s" % patience
        code = None if ended is None else 128 + ended.signal if ended.signal is not None else ended.code
        return Answer(code, self._texts[self._output].decode("utf-8", "replace"), errors)

    def _wait(self, left: float, attended: Optional[Attended]) -> None:
        seconds = max(0.0, min(left, 1.0 if self._open else 0.001))
        if attended is not None:
            attended.wait(seconds, self._open)
        elif self._open:
            poll = select.poll()
            for descriptor in self._open:
                poll.register(descriptor, select.POLLIN)
            poll.poll(int(min(seconds, _GLANCE) * 1000) + 1)
        else:
            time.sleep(seconds)

    def _exit(self, attended: Optional[Attended]) -> Optional[Exit]:
        if attended is not None and self.pid in attended.exits:
            return attended.exits.pop(self.pid)
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return None  # whoever attends has reaped it, and says so
        if pid == 0:
            return None
        return Exit(None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else Exit(os.WEXITSTATUS(status), None)

    def _take(self) -> None:
        for descriptor in list(self._open):
            while True:
                try:
                    data = os.read(descriptor, 65536)
                except BlockingIOError:
                    break
                if not data:
                    self._open.remove(descriptor)
                    os.close(descriptor)
                    break
                self._texts[descriptor] += data

    def _tell(self, listener: Listener, is_over: bool) -> None:
        for descriptor, text in self._texts.items():
            whole = len(text) if is_over else text.rfind(b"\n") + 1
            lines, self._heard[descriptor] = text[self._heard[descriptor] : whole], whole
            for line in lines.decode("utf-8", "replace").splitlines():
                listener.hear(line)
        listener.tick()

    def _kill(self, attended: Optional[Attended]) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)  # it has not been reaped, so the group is its own
        except OSError:
            pass
        deadline = time.monotonic() + BRIEFLY
        while time.monotonic() < deadline and self._exit(attended) is None:
            time.sleep(0.002)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
