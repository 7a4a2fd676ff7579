"""A clock that jumps while a run is on: limits count real time, and the record stays sane."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.events import RunCreated
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import project_at
from kit.waiting import wait_for

TARGETS = ("local",)  # a box with a strange clock is in remote/test_sickness.py
LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1",)


@pytest.fixture
def clock(tmp_path: Path, needs) -> dict[str, str]:
    """Variables for a host whose wall clock this test sets; the monotonic clock stays the kernel's."""
    needs("faketime")
    library = next(path for pattern in LIBRARIES for path in Path("/").glob(pattern.lstrip("/")))
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "now"),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1",
    }


@pytest.mark.parametrize("jump", ["-3d", "+400d"])
def test_a_jump_of_the_clock_neither_ends_a_run_early_nor_makes_its_duration_negative(
    bench, target, clock, tmp_path, jump
):
    now = tmp_path / "now"
    now.write_text("+0\n")
    seen = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **clock},
        capture_output=True,
        text=True,
    )
    assert float(seen.stdout) > 0, "the clock of the test works"
    bench.write(
        "t.py",
        """
        import os, select, time
        print("up", flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            select.select([], [], [], 0.01)  # time.sleep does not work under this library
        print(time.time())
        """,
    )
    run_id = _submit(bench, clock)
    wait_for(lambda: (bench.far(run_id) / "driver_log").read_text() == "up\n")
    now.write_text(jump + "\n")
    (bench.far(run_id) / "go").write_text("")
    ended = bench.event(run_id, "ended")
    assert ended["reason"] == "completed"
    started = bench.event(run_id, "started")
    assert abs(float((bench.far(run_id) / "driver_log").read_text().split()[1]) - started["t"]) > 86400, "it did jump"
    assert 0 <= ended["t"] - started["t"] < 3600
    record = bench.record(run_id)
    assert record["status"] == "Completed"
    assert not record["duration"].startswith("-")
    assert bench.run("history", "list", "-o", "table").code == 0


def _submit(bench, clock: dict[str, str]) -> str:
    """Only the host has the strange clock: the far side and the script inherit it, this process does not."""
    context = Context(bench.home, {**os.environ, **clock}, bench.root, bench.root.parent)
    request = SubmitRequest("t.py", time_limit=600.0)
    happened = list(submit(project_at(bench.root), request, context, wait=False))
    return next(event.run_id for event in happened if isinstance(event, RunCreated))
