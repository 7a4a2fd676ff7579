"""Every process of a run is ended, even if it tries to hide; signals reach only the intended process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.farside.system.processes import Process, look, send


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


SWEEPING = """
import subprocess, sys, time
from holdfast.farside.system import kernel
from holdfast.farside.system.processes import SweepRules, sweep

kernel.become_subreaper()
started = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
started.stdout.readline()
if "fork" in sys.argv[1]:
    started.wait()
print([each.signal for each in sweep(float(sys.argv[2]), time.sleep, SweepRules(), patience=30.0)])
"""
WAITING = "print(flush=True); signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITING}"
DISGUISED = f"import signal; from holdfast.farside.system import kernel; kernel.set_name('hf-guardian'); {WAITING}"
ORPHAN = f"import os, signal; os.fork() and os._exit(0); os.setsid(); {WAITING}"


@pytest.mark.parametrize(
    ("script", "grace", "signals"),
    [
        (f"import signal; {WAITING}", 30.0, ["SIGTERM"]),
        (STUBBORN, 0.1, ["SIGKILL"]),
        (DISGUISED, 30.0, ["SIGTERM"]),
        (ORPHAN, 30.0, ["SIGTERM"]),
    ],
    ids=["polite", "ignores SIGTERM", "called like a guardian", "forked twice"],
)
def test_a_sweep_ends_every_process_that_it_may_not_spare(script: str, grace: float, signals: list[str]) -> None:
    argv = [sys.executable, "-c", SWEEPING, script, str(grace)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (str(signals), "")


OWN_HELPER = """
import subprocess, sys, time
from holdfast.farside.system import kernel
from holdfast.farside.system.processes import SweepRules, sweep

kernel.become_subreaper()
helper = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
helper.stdout.readline()
print(sweep(0.1, time.sleep, SweepRules(own=lambda: {helper.pid})), helper.poll())
helper.kill()
"""


def test_a_helper_of_the_sweeping_process_is_spared_before_it_has_its_name() -> None:
    argv = [sys.executable, "-c", OWN_HELPER, f"import signal; {WAITING}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[] None\n", "")
