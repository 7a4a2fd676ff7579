"""Look at and end the processes of a kit: those of its accounts, and those below its servers."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kit.waiting import wait_for

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process as it was when listed. Other properties are read once, on demand, and are empty if it is gone."""

    pid: int
    parent: int
    uid: int
    state: str

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZX"

    @functools.cached_property
    def program(self) -> str:
        """The path of the program, empty when the process is gone."""
        return _link(self.pid, "exe")

    @functools.cached_property
    def folder(self) -> str:
        """The folder that it works in, empty when the process is gone."""
        return _link(self.pid, "cwd")

    @functools.cached_property
    def argv(self) -> list[str]:
        return _words(self.pid, "cmdline")

    @functools.cached_property
    def environment(self) -> list[str]:
        """`NAME=value` as the program was started with."""
        return _words(self.pid, "environ")


def every() -> Iterator[Process]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield _read(int(entry.name))


def of_user(uid: int) -> list[Process]:
    return [process for process in every() if process.uid == uid and process.is_alive]


def below(pid: int) -> list[Process]:
    """All descendants of `pid`, nearest first."""
    processes = [process for process in every() if process.is_alive]
    found: list[Process] = []
    level = {pid}
    while level:
        children = [process for process in processes if process.parent in level]
        found.extend(children)
        level = {child.pid for child in children}
    return found


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _read(pid).is_alive
    return False


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended, or became another user's
            os.kill(process.pid, number)


def end_user(uid: int) -> None:
    """Kill every process of `uid` and return when none is left."""

    def gone() -> bool:
        left = of_user(uid)
        send(left, signal.SIGKILL)
        return not left

    wait_for(gone, what=f"no process of user {uid} is left")


def _read(pid: int) -> Process:
    folder = _PROC / str(pid)
    # The name in parentheses may hold anything: the fields are those after the last parenthesis.
    fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return Process(pid, int(fields[1]), folder.stat().st_uid, fields[0])


def _words(pid: int, name: str) -> list[str]:
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / name).read_bytes().decode(errors="surrogateescape").split("\0")[:-1]
    return []


def _link(pid: int, name: str) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(_PROC / str(pid) / name)
    return ""
