"""Outputs that come home while the run goes on, and wishes for outputs."""

from __future__ import annotations

import json

import pytest

from kit.waiting import wait_for

WAITING = """
import os, time
open("outputs/model", "w").write("old")
print("up", flush=True)
while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
    time.sleep(0.01)
open("outputs/model", "w").write("new")
"""


def test_outputs_are_fetched_while_a_run_is_followed_also_later(bench):
    bench.write("t.py", WAITING)
    run_id = bench.start("--sync-outputs", "1s", "t.py")
    assert json.loads((bench.near(run_id) / "submission.json").read_text())["sync_outputs"] == 1.0
    follower = bench.popen("logs", "-f", "-r", run_id)
    model = bench.near(run_id) / "outputs/model"
    wait_for(lambda: model.read_text() == "old")  # a look may come while the script has opened it and not yet written
    assert bench.record(run_id)["status"] == "Running"
    (bench.far(run_id) / "go").touch()
    out, _ = follower.communicate(timeout=60)
    assert (follower.returncode, out) == (0, b"up\n")
    assert model.read_text() == "new", "of the same size, and exact at the end"


def test_a_run_without_outputs_leaves_nothing_that_would_have_to_be_kept(bench):
    bench.write("t.py", "print(1)\n")
    assert bench.submit("--no-outputs", "t.py").code == 0
    assert bench.run("experiment", "clean", "--all").code == 0
    assert not list(bench.home.glob("runs/*/*_*"))


@pytest.mark.parametrize("words", [("--sync-outputs", "10s", "--no-outputs"), ("--sync-outputs", "0")])
def test_wishes_for_outputs_that_make_no_sense_are_refused(bench, words):
    bench.write("t.py", "print(1)\n")
    result = bench.submit(*words, "t.py")
    assert result.code == 240
    assert "outputs" in result.err.lower()
