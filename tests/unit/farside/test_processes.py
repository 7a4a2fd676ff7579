"""Signals reach the process that is meant and no other."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.farside.run.processes import Process, look, send


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as started:
        yield started
        started.kill()


def _process(started: subprocess.Popen[bytes]) -> Process:
    found = look(started.pid)
    assert found is not None
    return found


def test_a_process_that_got_the_number_of_another_is_not_signaled(sleeper: subprocess.Popen[bytes]) -> None:
    earlier = _process(sleeper)._replace(start="1")
    assert not send(earlier, signal.SIGKILL)
    assert sleeper.poll() is None


def test_the_process_that_is_meant_is_signaled(sleeper: subprocess.Popen[bytes]) -> None:
    meant = _process(sleeper)
    assert send(meant, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
    assert not send(meant, signal.SIGKILL)
