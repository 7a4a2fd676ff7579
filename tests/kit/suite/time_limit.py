"""A test that takes longer than its limit is ended, and says where its processes stand.

Two minutes for a test with its fixtures; `@pytest.mark.time_limit(300, "builds an image")` gives it more and says why.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from kit import processes

LIMIT = 120.0
_LAST_RESORT = 60.0
"""Seconds after the limit: a test that no exception can end takes its worker with it."""
_MOST = 60
_OWN = ("PYTEST_CURRENT_TEST=", "HOME=")


class TimeLimit(Exception):
    """A test took too long."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "time_limit(seconds, reason): this test may take longer than others")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = item.get_closest_marker("time_limit")
        if marker is not None and not (len(marker.args) == 2 and marker.args[1]):
            raise pytest.UsageError(f"{item.nodeid}: write time_limit(SECONDS, WHY)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    limit = limit_of(item)

    def strike(_number: int, frame: FrameType | None) -> None:
        raise TimeLimit(f"{item.nodeid} took longer than {limit:g} s.\n{standing(item, frame)}")

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, limit)
    faulthandler.dump_traceback_later(limit + _LAST_RESORT, exit=True, file=2)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def limit_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("time_limit")
    if marker is None:
        return LIMIT
    seconds, _reason = marker.args
    return float(seconds)


def standing(item: pytest.Item, frame: FrameType | None) -> str:
    """The stacks of this process and of all that the test has started, as far as they can be had."""
    parts = ["This process:\n", *(line for line in traceback.format_stack(frame) if "/site-packages/" not in line)]
    main = threading.main_thread().ident
    for number, other in sys._current_frames().items():
        if number != main:
            parts += ["\nA thread of it:\n", *traceback.format_stack(other)]
    for one in _of_test(item)[:_MOST]:
        parts.append(f"\nProcess {one.pid}, below {one.parent}, {one.state}: {' '.join(one.argv)[:300]}\n")
        parts.append(_stack(one))
    return "".join(parts)


def _of_test(item: pytest.Item) -> list[processes.Process]:
    """What is below this process, and what says in its environment that it comes from this test: also what has
    detached itself, and what a server of the kit started for an account of the test."""
    below = processes.below(os.getpid())
    known = {one.pid for one in below}
    marks = [f"PYTEST_CURRENT_TEST={item.nodeid} "]
    homes = {value for one in below for value in one.environment if value.startswith("HOME=")}
    others = []
    for one in processes.every():
        if one.pid in known or not one.is_alive:
            continue
        environment = one.environment
        if any(value.startswith(marks[0]) or value in homes - {f"HOME={Path.home()}"} for value in environment):
            others.append(one)
    return [*below, *others]


def _stack(one: processes.Process) -> str:
    spy = shutil.which("py-spy", path=os.path.dirname(sys.executable))
    if spy and "python" in Path(one.program).name:
        try:
            done = subprocess.run(
                [spy, "dump", "--nonblocking", "--pid", str(one.pid)], capture_output=True, text=True, timeout=10
            )
        except subprocess.TimeoutExpired:
            return "  (no stack in 10 s)\n"
        if done.returncode == 0:
            return done.stdout
    for name in ("stack", "wchan"):  # the first is root's to read
        try:
            return "".join(f"  {line}\n" for line in Path(f"/proc/{one.pid}/{name}").read_text().splitlines()) or "\n"
        except OSError:
            continue
    return "  (gone)\n"
