"""Asking other programs: several at once, all that they print, and none is waited for longer than it was given."""

import os
import select
import signal
import time
from typing import Dict, List

from holdfast.farside.run.children import spawn
from holdfast.farside.run.output import make_pipe

MOST_OUTPUT = 1 << 20
BRIEFLY = 0.2
"""Seconds for a killed program to be gone. One that the kernel does not let go is left: a child nobody waits for."""


class Program:
    """One program that was started, in a session of its own. Raises CannotStart."""

    def __init__(self, argv: List[str], environment: Dict[str, str]) -> None:
        self.reader, writer = make_pipe()
        self.output = b""
        self.is_done = False
        self.began = time.monotonic()
        try:
            self.pid = spawn(argv, environment, "/", writer)
        except BaseException:
            os.close(self.reader)
            raise
        finally:
            os.close(writer)
        os.set_blocking(self.reader, False)

    def take(self) -> None:
        """Take what it has printed by now; `is_done` when it has closed its output, as it does when it ends."""
        while not self.is_done:
            try:
                data = os.read(self.reader, 65536)
            except BlockingIOError:
                return
            if data:
                self.output = (self.output + data)[:MOST_OUTPUT]
            else:
                self.is_done = True
                os.close(self.reader)

    def seconds_left(self, timeout: float) -> float:
        return self.began + timeout - time.monotonic()

    def kill(self) -> None:
        """End it and what it has started, without waiting. For a program that has not been reaped."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


def collect(programs: List[Program], timeout: float) -> None:
    """Until all are done or `timeout` seconds have passed since each began; what is late is killed, and its `is_done`
    stays False."""
    while True:
        waiting = [each for each in programs if not each.is_done and each.seconds_left(timeout) > 0]
        if not waiting:
            break
        poll = select.poll()
        for each in waiting:
            poll.register(each.reader, select.POLLIN)
        poll.poll(max(1, int(min(each.seconds_left(timeout) for each in waiting) * 1000)))
        for each in waiting:
            each.take()
    for each in programs:
        if not each.is_done:
            each.kill()
    _reap(programs)


def _reap(programs: List[Program]) -> None:
    deadline = time.monotonic() + BRIEFLY
    left = [each.pid for each in programs]
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if not _is_reaped(pid)]
        if left:
            time.sleep(0.002)


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
