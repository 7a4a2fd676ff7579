"""A git at work in a repository that nobody trusts: what it may use, and how long it is waited for."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.frozen import dataclass

if TYPE_CHECKING:
    import subprocess

_LONGEST = 600.0
"""Seconds, where the system does not tell what a process does; and seconds of processor time for one that outlives
us."""

_LIMITED = b'{ ulimit -d "$1"; ulimit -t "$2"; } 2>/dev/null; shift 2; exec "$@"'
"""Where a limit is stricter already, that one holds."""


class GitError(Exception):
    """Git gave no answer; the message is its own last word."""


class GitMissingError(GitError):
    """There is no git on PATH."""


class GitStuckError(GitError):
    """Git waits for something that may never come."""


class GitBusyError(GitStuckError):
    """Git works, and no end can be seen."""


class GitTooLargeError(GitStuckError):
    """Git needs more memory than it may have, or would."""


@dataclass(frozen=True)
class Bounds:
    """`patience`: seconds in which git has to do something; one that waits for the other end of a FIFO does not.
    `effort`: seconds of processor time for the next part of its answer. `memory`: bytes, where the system counts
    them. A million files take 5 seconds and a quarter of a gigabyte."""

    patience: float = 10.0
    effort: float = 60.0
    memory: int = 1 << 30


def limited(command: Sequence[bytes], bounds: Bounds) -> list[bytes]:
    """The command with limits that the system keeps, from its first moment until it ends, also if we were killed
    before. A shell sets them: the process that starts git has other threads, and can change only its own."""
    if os.name != "posix":
        return list(command)
    limits = bounds.memory >> 10, int(_LONGEST)
    return [b"/bin/sh", b"-c", _LIMITED, b"git", *(b"%d" % each for each in limits), *command]


class GitProcess:
    """A git that was asked something. It ends with us at the latest, unless we are killed."""

    def __init__(self, process: subprocess.Popen[bytes], bounds: Bounds) -> None:
        self._process, self._bounds = process, bounds
        atexit.register(process.kill)

    def answer(self, given: bytes = b"", no_match: int = 0) -> tuple[bytes, bytes]:
        """What it printed, on both streams. Raises GitError if it did not succeed, or is not waited for any longer."""
        try:
            output, errors = self._waited_for(given)
        except BaseException:
            self._process.kill()
            self._process.communicate()
            raise
        finally:
            atexit.unregister(self._process.kill)
        if self._process.returncode not in (0, no_match):
            raise _failure(errors, self._process.returncode)
        return output, errors

    def _waited_for(self, given: bytes) -> tuple[bytes, bytes]:
        from subprocess import TimeoutExpired

        more: bytes | None = given
        waited, before, length, spent = 0.0, "", 0, 0.0
        while True:
            try:
                return self._process.communicate(more, timeout=self._bounds.patience)
            except TimeoutExpired as late:
                more, waited = None, waited + self._bounds.patience
                said = len(late.output or b"") + len(late.stderr or b"")
            activity, seconds = _look_at(self._process.pid)
            if said != length:
                length, spent = said, seconds
            if activity == before if activity else waited >= _LONGEST:
                raise GitStuckError("git waits for a file that it cannot read to its end")
            if seconds - spent >= self._bounds.effort:
                raise GitBusyError(f"git has computed for {seconds - spent:.0f} seconds without an answer")
            before = activity


def _look_at(pid: int) -> tuple[str, float]:
    """A text that is another one after the process has done something, empty where the system does not tell; and its
    seconds of processor time."""
    try:
        with open(f"/proc/{pid}/status") as status, open(f"/proc/{pid}/stat") as stat:
            switches = [line for line in status if "ctxt_switches" in line]
            ticks = stat.read().rpartition(")")[2].split()[11:13]
            return "".join([*switches, *ticks]), sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return "", 0.0


def _failure(errors: bytes, code: int) -> GitError:
    lines = [line for line in os.fsdecode(errors).splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal:")]
    word = (fatal or lines or [f"git ended with code {code}"])[0]
    return GitTooLargeError(word) if "Out of memory" in word else GitError(word)
