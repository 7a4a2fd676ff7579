"""A test that hangs ends at its limit, with the stacks of what hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kit.suite.containment import MARK

pytestmark = pytest.mark.kit
TESTS = Path(__file__).resolve().parents[2]
HANGING = """
    import subprocess, sys, threading
    import pytest

    CHILD = "import threading\\ndef in_the_child(): threading.Event().wait()\\nprint(flush=True)\\nin_the_child()"

    def in_a_thread(): threading.Event().wait()

    @pytest.mark.time_limit(10, "it hangs")
    def test_that_hangs():
        threading.Thread(target=in_a_thread, daemon=True).start()
        with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            try:
                threading.Event().wait()
            finally:
                child.kill()

    torn_down = []

    @pytest.fixture
    def first():
        yield
        torn_down.append("first")

    @pytest.fixture
    def hangs_at_its_end(first):
        yield
        threading.Event().wait()

    @pytest.mark.time_limit(2, "its fixture hangs")
    def test_whose_fixture_hangs(hangs_at_its_end):
        pass

    def test_that_comes_after_it():
        assert torn_down == ["first"]
"""


def test_the_stacks_of_its_threads_and_processes_are_printed_and_the_next_test_runs(tmp_path):
    (tmp_path / "test_it.py").write_text(textwrap.dedent(HANGING))
    kept = {name: value for name, value in os.environ.items() if name != MARK and "PYTEST" not in name}
    words = ["-p", "kit.suite.time_limit", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words, "test_it.py"],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "1 failed, 2 passed, 1 error" in done.stdout, done.stdout
    assert "test_it.py::test_that_hangs took longer than 10 s." in done.stdout
    assert "in_a_thread" in done.stdout
    if may_look_into_processes():
        assert "in_the_child" in done.stdout


def may_look_into_processes() -> bool:
    """On most systems only root can read a process that is not a descendant."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.getuid() == 0 or not scope.exists() or scope.read_text().strip() == "0"
