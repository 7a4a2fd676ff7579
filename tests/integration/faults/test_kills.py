"""`kill -9` of the client, the supervisor, the guardian, both, at every stage. Nothing lost, nothing doubled."""

from __future__ import annotations

import contextlib
import json
import os
import signal

import pytest

from integration.products.conftest import PRODUCTS
from integration.runs.conftest import is_gone
from kit.waiting import wait_for

TARGETS = PRODUCTS
LINES = 100
SCRIPT = f"""
import os, sys, time
open(os.environ["AZUREML_NATIVE_SHARE_DIRECTORY"] + "starts", "a").write("x")
for number in range({LINES}):
    print("line", number, "x" * 50, flush=True)
    time.sleep(0.006)
open("outputs/result", "w").write("whole")
"""
EXPECTED = "".join(f"line {number} {'x' * 50}\n" for number in range(LINES))


STAGES = ("at once", "reserved", "recorded", "created", "started", "output")
"""The progress of a submission when its client is killed, independent of the machine's speed."""
VICTIMS = ((0,), (1,), (0, 1), (1, 0))
"""The guardian, the supervisor, both in either order."""


def _has_reached(bench, stage: str) -> bool:
    near, far = bench.root / ".holdfast" / "runs", list(bench.home.glob("runs/*/*_*"))
    match stage:
        case "at once":
            return True
        case "reserved":
            return near.is_dir() and any(near.iterdir())
        case "recorded":
            return near.is_dir() and any(not each.name.endswith(".new") for each in near.iterdir())
        case "created":
            return bool(far)
        case "started":
            return bool(far) and any(event["e"] == "started" for event in bench.journal(far[0].name))
        case _:
            return bool(far) and (far[0] / "driver_log").stat().st_size > 0


def _owners(bench, run_id: str) -> dict[int, int]:
    """Guardian and supervisor by their bytes, once both exist: a guardian exists before its supervisor. A run may end
    first; then one is missing."""
    from holdfast.farside.system.kernel import lock_holder

    def found() -> dict[int, int]:
        return {byte: lock_holder(str(bench.far(run_id) / "lock"), byte) or 0 for byte in (0, 1)}

    wait_for(lambda: all(found().values()) or any(event["e"] == "ended" for event in bench.journal(run_id)))
    return {byte: pid for byte, pid in found().items() if pid}


def _starts(bench) -> int:
    return sum(len(path.read_text()) for path in bench.home.glob("share/*/starts"))


def _runs(bench) -> list[dict]:
    result = bench.run("history", "list", "-o", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


@pytest.mark.moments(*STAGES)
def test_a_client_killed_at_any_moment_leaves_the_run_once_or_not_at_all(bench, target, moment):
    bench.write("train.py", SCRIPT)
    client = bench.popen("submit", "train.py")
    wait_for(lambda: _has_reached(bench, moment.stage) or client.poll() is not None)
    moment.pause(0.06)
    client.kill()
    client.communicate()
    runs = _runs(bench)
    assert len(runs) <= 1
    if not runs:
        assert _starts(bench) == 0, "an unknown run"
        assert not list(bench.home.glob("runs/*/*/lock"))
        return
    followed = bench.run("logs", "-f", "-r", runs[0]["run_id"])
    record = bench.record(runs[0]["run_id"])
    if record["reason"] == "not-started":
        assert _starts(bench) == 0
        return
    assert record["status"] == "Completed"
    assert followed.out == EXPECTED
    assert _starts(bench) == 1
    assert (bench.near(record["run_id"]) / "outputs" / "result").read_text() == "whole"


@pytest.mark.moments("at once", "a byte more", "a line more", "half of the rest")
def test_followers_killed_again_and_again_lose_no_byte(bench, target, moment):
    bench.write("train.py", SCRIPT)
    run_id = bench.start("train.py")
    copy = bench.near(run_id) / "driver_log"
    for _ in range(4):
        before = copy.stat().st_size if copy.exists() else 0
        rest = len(EXPECTED) - before
        more = {"at once": 0, "a byte more": 1, "a line more": min(60, rest), "half of the rest": rest // 2}
        wanted = before + more[moment.stage] if more[moment.stage] else 0
        follower = bench.popen("logs", "-f", "-r", run_id)
        wait_for(lambda: wanted == 0 or copy.stat().st_size >= wanted or follower.poll() is not None)  # noqa: B023
        moment.pause(0.4)
        follower.kill()
        follower.communicate()
    assert bench.run("logs", "-f", "-r", run_id).out == EXPECTED
    assert (bench.near(run_id) / "driver_log").read_text() == EXPECTED


@pytest.mark.moments(*("created", "started", "output") * len(VICTIMS))
def test_owners_killed_at_any_moment_are_recorded_as_what_happened(bench, target, moment):
    bench.write("train.py", SCRIPT)
    run_id = bench.start("train.py")
    victims = VICTIMS[moment.number % len(VICTIMS)]
    owners = _owners(bench, run_id)
    wait_for(lambda: _has_reached(bench, moment.stage))
    moment.pause(0.2)
    for byte in victims:
        with contextlib.suppress(KeyError, ProcessLookupError):  # the run was quicker
            os.kill(owners[byte], signal.SIGKILL)
    result = bench.run("logs", "-f", "-r", run_id)
    record = bench.record(run_id)
    assert record["status"] in ("Completed", "Failed")
    assert EXPECTED.startswith(result.out), "whatever came home is the beginning of what was written"
    if record["status"] == "Completed":
        assert result.out == EXPECTED
    else:
        assert record["reason"] == "supervisor-died"
        assert 1 in victims
    started = [event["pid"] for event in bench.journal(run_id) if event["e"] == "started"]
    wait_for(lambda: all(is_gone(pid) for pid in started))
    assert _starts(bench) <= 1
