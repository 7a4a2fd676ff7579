"""Out of memory, for real: a control group with a small limit, and the kernel's own killer."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.suite.missing_parts import leave_out
from kit.waiting import wait_for

LIMIT = 200 << 20


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory control group for this test, in either version of the interface."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    parent = Path("/sys/fs/cgroup") if unified.exists() else Path("/sys/fs/cgroup/memory")
    group = parent / f"holdfast-test-{os.getpid()}"
    try:
        if unified.exists() and "memory" not in (parent / "cgroup.subtree_control").read_text():
            raise OSError("the memory controller is not enabled below the root")  # noqa: TRY301 - told with the others
        group.mkdir()
        (group / ("memory.max" if unified.exists() else "memory.limit_in_bytes")).write_text(str(LIMIT))
    except OSError:
        leave_out("a writable memory control group")
    yield group
    wait_for(lambda: _is_removed(group, parent), what="the group is empty and removed")


def _is_removed(group: Path, parent: Path) -> bool:
    """Moves its processes out until none is left; a process that is just ending can be neither moved nor left."""
    for pid in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (parent / "cgroup.procs").write_text(pid)
    group.rmdir()
    return True


def test_a_script_that_the_kernel_ends_for_memory_is_recorded_as_out_of_memory(bench, small_group):
    """Only the run is in the group then: the kernel's log has pids of the machine, which differ from those in here."""
    bench.write(
        "greedy.py",
        """
        import os, time
        print("up", flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            time.sleep(0.01)
        hoard = bytearray(1 << 30)
        print("too far")
        """,
    )
    inside = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])"
    words = [sys.executable, "-m", "holdfast", "submit", "-a", "greedy.py"]
    started = subprocess.run(
        [sys.executable, "-c", inside, str(small_group / "cgroup.procs"), *words],
        cwd=bench.root,
        capture_output=True,
        text=True,
    )
    run_id = started.stdout.strip()
    wait_for(lambda: len(_members(small_group)) == 3, what="guardian, supervisor and script are alone")
    (bench.far(run_id) / "go").write_text("")
    done = bench.run("logs", "-f", "-r", run_id)
    assert (done.code, done.out) == (137, "up\n"), done.err
    assert "The kernel ended the script because memory ran out." in done.err
    assert bench.record(run_id)["reason"] == "out-of-memory"


def _members(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()
