"""A test that takes longer than its limit is ended, and the stacks of its processes are printed.

Two minutes for a test with its fixtures; `@pytest.mark.time_limit(300, "builds an image")` gives it more and says why.
What a session makes once (images, the table of lies) counts for the test that asks first, and for those that wait.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.outcomes import Failed

from kit import processes

LIMIT = 120.0
_FOR_A_SESSION = {"docker_template": 480.0, "shared_docker": 480.0, "outcomes": 480.0, "python_downloads": 120.0}
"""Seconds more, by fixture."""
_LAST_RESORT = 90.0
"""Seconds after the limit: if no exception can end a test, its worker ends with it."""
_STACKS_WITHIN = 30.0
_MOST = 60


class TimeLimit(Failed):
    """A test took too long. Not an Exception, which tests catch; pytest goes on with the other fixtures."""


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
        said = f"{item.nodeid} took longer than {limit:g} s.\n{stacks_of(item, frame)}"
        raise TimeLimit(said, pytrace=False)

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, limit)
    stderr = item.config.stash.get(fault_handler_stderr_fd_key, 2)
    faulthandler.dump_traceback_later(limit + _LAST_RESORT, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        pytest_enter_pdb()
        signal.signal(signal.SIGALRM, before)


def pytest_enter_pdb() -> None:
    """A person who debugs a test has time."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()


def limit_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("time_limit")
    own = LIMIT if marker is None else float(marker.args[0])
    wanted = getattr(item, "fixturenames", ())
    return own + max((more for name, more in _FOR_A_SESSION.items() if name in wanted), default=0.0)


def stacks_of(item: pytest.Item, frame: FrameType | None) -> str:
    """Of this process and of all that the test started, if they can be read."""
    deadline = time.monotonic() + _STACKS_WITHIN
    parts = ["This process:\n", *(line for line in traceback.format_stack(frame) if "/site-packages/" not in line)]
    main = threading.main_thread().ident
    for number, other in sys._current_frames().items():
        if number != main:
            parts += ["\nA thread of it:\n", *traceback.format_stack(other)]
    for one in _of_test(item)[:_MOST]:
        parts.append(f"\nProcess {one.pid}, below {one.parent}, {one.state}: {' '.join(one.argv)[:300]}\n")
        parts.append(_stack(one, deadline - time.monotonic()))
    return "".join(parts)


def _of_test(item: pytest.Item) -> list[processes.Process]:
    """Descendants of this process, and processes whose environment names this test. The latter include detached ones,
    and those that a server of the kit started for an account of the test."""
    below = processes.below(os.getpid())
    known = {one.pid for one in below}
    mark, here = f"PYTEST_CURRENT_TEST={item.nodeid} ", f"HOME={Path.home()}"
    homes = {value for one in below for value in one.environment if value.startswith("HOME=")} - {here}
    others = [one for one in processes.every() if one.pid not in known and one.is_alive]
    return [*below, *(one for one in others if any(each.startswith(mark) or each in homes for each in one.environment))]


def _stack(one: processes.Process, seconds: float) -> str:
    spy = shutil.which("py-spy", path=os.path.dirname(sys.executable))
    if spy and seconds > 0 and "python" in Path(one.program).name:
        argv = [spy, "dump", "--nonblocking", "--pid", str(one.pid)]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=min(seconds, 10.0))
        except subprocess.TimeoutExpired:
            return "  (no stack in time)\n"
        if done.returncode == 0:
            return done.stdout
    for name in ("stack", "wchan"):  # the first is root's to read
        try:
            return "".join(f"  {line}\n" for line in Path(f"/proc/{one.pid}/{name}").read_text().splitlines()) or "\n"
        except OSError:
            continue
    return "  (gone)\n"
