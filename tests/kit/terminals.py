"""A command on its own terminal, and what it writes there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Seen:
    """Output on its way to the terminal's user. The process has its own group, which a test may stop."""

    def __init__(self, process: subprocess.Popen[bytes], leader: int) -> None:
        self.process, self._leader = process, leader
        self.data = b""

    def until(self, condition: Callable[[bytes], bool], seconds: float = 60.0) -> bytes:
        """The output until it satisfies the condition; AssertionError if it does not in time."""
        deadline = time.monotonic() + seconds
        while not condition(self.data):
            ready, _, _ = select.select([self._leader], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"after {seconds} s still not so: {self.data!r}"
            self.data += os.read(self._leader, 1 << 16)
        return self.data


@contextmanager
def on_a_terminal(words: Sequence[str], cwd: Path) -> Iterator[Seen]:
    leader, follower = os.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *words],
            cwd=cwd,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            preexec_fn=os.setpgrp,  # noqa: PLW1509 - `process_group` is of Python 3.11
        )
        os.close(follower)
        try:
            yield Seen(process, leader)
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(leader)
