"""Damaged files: noticed by offset and checksum, kept aside, never spliced."""

from __future__ import annotations

import json
import os

import pytest

from kit.waiting import wait_for

WAITING = """
import os, time
print("first part", flush=True)
while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
    time.sleep(0.01)
print("second part", flush=True)
"""


def _half_way(bench) -> str:
    bench.write("t.py", WAITING)
    run_id = bench.start("t.py")
    wait_for(lambda: (bench.far(run_id) / "driver_log").read_bytes() == b"first part\n")
    bench.run("status", "-r", run_id)
    assert (bench.near(run_id) / "driver_log").read_bytes() == b"first part\n"
    return run_id


def _finish(bench, run_id: str) -> None:
    (bench.far(run_id) / "go").write_text("")
    bench.event(run_id, "ended")


@pytest.mark.parametrize("damage", ["truncated", "zeroed", "changed"])
def test_a_far_log_that_changed_under_the_copy_is_copied_anew_and_the_old_copy_kept(bench, target, damage):
    run_id = _half_way(bench)
    far = bench.far(run_id) / "driver_log"
    with far.open("r+b") as file:
        if damage == "truncated":
            file.truncate(4)
        else:
            file.seek(6)
            file.write(b"\0\0\0\0" if damage == "zeroed" else b"PART")
    _finish(bench, run_id)
    assert bench.run("logs", "-f", "-r", run_id).code == 0
    near = bench.near(run_id)
    assert (near / "driver_log").read_bytes() == far.read_bytes()
    assert (near / "driver_log.diverged-1").read_bytes() == b"first part\n"
    assert "differed" in " ".join(bench.record(run_id)["notes"])


@pytest.mark.parametrize("tail", [b"\0" * 500, b'{"t":1,"e":"sta', b"\xff\xfe garbage \n"])
def test_a_journal_with_a_damaged_tail_still_ends_and_says_that_lines_were_lost(bench, target, tail):
    run_id = _half_way(bench)
    with (bench.far(run_id) / "journal.jsonl").open("ab") as file:
        file.write(tail)
    _finish(bench, run_id)
    record = bench.record(run_id)
    assert record["status"] == "Completed"
    assert "could not be read" in " ".join(record["notes"])


def test_a_journal_that_lost_its_end_never_becomes_completed(bench, target):
    bench.write("t.py", "print(1)")
    run_id = bench.start("t.py")
    bench.event(run_id, "ended")
    wait_for(lambda: not _is_alive(bench, run_id))
    far = bench.far(run_id) / "journal.jsonl"
    far.write_bytes(b"".join(line for line in far.read_bytes().splitlines(True) if b'"ended"' not in line))
    record = bench.record(run_id)
    assert (record["status"], record["reason"]) == ("Failed", "supervisor-died")


def test_a_damaged_near_copy_is_restored_from_the_host(bench, target):
    run_id = _half_way(bench)
    (bench.near(run_id) / "driver_log").write_bytes(b"something else entirely")
    _finish(bench, run_id)
    bench.run("logs", "-f", "-r", run_id)
    assert (bench.near(run_id) / "driver_log").read_bytes() == b"first part\nsecond part\n"


def test_an_index_that_was_damaged_or_removed_comes_back_by_itself(bench, target):
    bench.write("t.py", "import holdfast\nholdfast.log('x', 1)\n")
    bench.submit("t.py")
    (index,) = (bench.root / ".holdfast").glob("index-*.sqlite")
    before = bench.run("history", "list", "-o", "json").out
    for damage in (lambda: index.write_bytes(b"no database"), index.unlink, lambda: os.truncate(index, 100)):
        damage()
        assert bench.run("history", "list", "-o", "json").out == before
    assert json.loads(before)[0]["x"] == 1


def _is_alive(bench, run_id: str) -> bool:
    from holdfast.farside.run.liveness import is_alive

    return is_alive(str(bench.far(run_id)))
