"""Signals and ends of children, as a process hears them that waits for other things too."""

import os
import signal
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple


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
