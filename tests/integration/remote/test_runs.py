"""A run on a box and the connection to it; what every product promises is in `integration/products`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.remote.benches import SHARE_LINE, FarBench, far_bench, watched  # noqa: F401 - a fixture
from kit import processes
from kit.waiting import wait_for

MakeBench = Callable[..., FarBench]
WAITING = f"""
import os, time
{SHARE_LINE}
print("first", flush=True)
while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
    time.sleep(0.01)
print("second", flush=True)
open("outputs/result", "w").write("whole")
"""


@pytest.fixture
def bench(far_bench: MakeBench) -> FarBench:  # noqa: F811
    return far_bench()


def _let_go(bench: FarBench, run_id: str) -> None:
    (bench.far(run_id) / "go").write_text("")


def test_a_run_holds_no_session_of_ssh_and_is_canceled_over_a_new_connection(bench: FarBench) -> None:
    """The connection that Holdfast keeps open for the next command has no session left, and can go."""
    run_id = bench.begin(WAITING, until="first\n")
    bench.box.link.cut()
    wait_for(lambda: bench.box.server.connections() == 0, what="no connection is left")
    assert processes.is_alive(bench.event(run_id, "started")["pid"])
    assert bench.run("cancel", "-r", run_id, "--grace", "0s").code == 0
    record = bench.record(run_id)
    assert (record["status"], record["reason"]) == ("Canceled", "canceled")
    assert bench.run("logs", "-r", run_id).out == "first\n"
    bench.until_nothing_is_left(run_id)


def test_a_run_whose_box_is_gone_is_abandoned_and_found_again_when_the_box_is_back(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    run_id = bench.start("t.py")
    refused = bench.run("cancel", "-r", run_id, "--abandon", "-y")
    assert refused.code == 246
    assert "answers, so" in refused.err
    bench.box.link.refuse()
    bench.box.link.cut()
    down = bench.run("cancel", "-r", run_id)
    assert down.code == 245
    assert "cannot be reached" in down.err
    assert "connection lost" not in down.err
    assert bench.run("cancel", "-r", run_id, "--abandon", "-y").code == 0
    assert bench.record(run_id)["status"] == "Abandoned"
    assert "unreachable" not in bench.run("history", "list").err, "it is not asked about any more"
    bench.box.link.accept()
    assert bench.run("status", "-r", run_id, "-o", "tsv", "--query", "status").out == "Running\n"
    _let_go(bench, run_id)
    assert bench.run("logs", "-f", "-r", run_id).code == 0
    assert bench.record(run_id)["status"] == "Completed"
    near, far = bench.near(run_id), bench.far(run_id)
    assert (near / "journal.jsonl").read_bytes() == (far / "journal.jsonl").read_bytes()


def test_several_boxes_work_at_once(far_bench: MakeBench) -> None:  # noqa: F811
    benches = [far_bench(f"gpu{number}") for number in range(1, 4)]
    benches[0].write("t.py", "import os\nprint(os.environ['HOLDFAST_TARGET'], os.path.expanduser('~'))\n")
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda each: each.submit("t.py"), benches))
    assert [each.out for each in results] == [f"{each.box.name} {each.box.account.home}\n" for each in benches]
    for each in benches:
        assert len(list(each.home.glob("runs/*/*_*"))) == 1


@pytest.mark.parametrize("location", ["bin/mine", "~/own/mine", "{home}/own/mine", "python3"])
def test_the_python_of_the_target_is_found_on_the_box(bench: FarBench, location: str) -> None:
    wrapper = '#!/bin/sh\nWHICH=mine exec /usr/bin/env python3 "$@"\n'
    bench.box.account.write("own/mine", wrapper, 0o755)
    bench.write("bin/mine", wrapper).chmod(0o755)
    bench.attach(bench.box, compute=f"pythonLocation: {location.format(home=bench.box.account.home)}\n")
    bench.write("t.py", "import os\nprint(os.environ.get('WHICH'))\n")
    done = bench.submit("t.py")
    assert done.out == ("None\n" if location == "python3" else "mine\n"), done.err


@pytest.mark.parametrize("location", ["/nowhere/bin/python", "missing/python", "python9.9"])
def test_a_python_that_is_not_there_is_the_runs_end_and_said_so(bench: FarBench, location: str) -> None:
    bench.attach(bench.box, compute=f"pythonLocation: {location}\n")
    bench.write("t.py", "print(1)")
    done = bench.submit("t.py")
    assert done.code == 246, done.err
    assert location in done.err
    assert "pythonLocation" in done.err
    assert bench.record()["reason"] == "cannot-start"


@pytest.mark.parametrize("keep_sessions", [True, False])
def test_output_resumes_at_the_exact_byte_when_sshd_is_restarted(bench: FarBench, keep_sessions: bool) -> None:
    bench.write("t.py", WAITING)
    with watched(bench.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"first\n"
        bench.box.server.restart(keep_sessions)
        _let_go(bench, bench.near_ids()[0])
        out, err = client.communicate(timeout=60)
    assert (client.returncode, out) == (0, b"second\n")
    said = err.decode()
    assert ("connection lost (" in said and ", trying again" in said) is not keep_sessions, said
    (run_id,) = bench.near_ids()
    assert (bench.near(run_id) / "driver_log").read_bytes() == b"first\nsecond\n"
    assert bench.starts() == [run_id]


def test_a_box_that_is_down_for_a_while_is_tried_until_it_is_back(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    with watched(bench.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"first\n"
        bench.box.server.stop()
        _let_go(bench, bench.near_ids()[0])
        assert client.stderr is not None
        lost = 0
        while lost < 2:
            lost += b"connection lost" in client.stderr.readline()
        bench.box.server.start()
        assert client.communicate(timeout=60)[0] == b"second\n"
    assert client.returncode == 0


def test_a_script_that_prints_without_end_does_not_keep_a_run_from_being_canceled(bench: FarBench) -> None:
    bench.write("t.py", "import time\nwhile True:\n    print('x' * 500_000)\n    time.sleep(0.05)\n")
    bench.box.link.slow(throttle=1e6)
    with watched(bench.submitting("t.py")) as client:
        logs = "runs/*/*_*/driver_log"
        wait_for(lambda: any(each.stat().st_size > 20 << 20 for each in bench.home.glob(logs)), what="it is far ahead")
        (run_id,) = bench.near_ids()
        done = bench.run("cancel", "-r", run_id, "--grace", "0s", "--no-wait", timeout=60)
        assert done.code == 0, done.err
        assert bench.event(run_id, "ended")["reason"] == "canceled"
        assert client.poll() is None, "its output is still on its way"


def test_an_unreachable_box_leaves_a_record_and_is_not_asked_about_it(bench: FarBench) -> None:
    bench.write("t.py", "print(1)\n")
    bench.box.link.refuse()
    done = bench.submit("t.py")
    assert done.code == 245
    assert "cannot be reached" in done.err
    bench.box.link.accept()
    before = bench.box.link.counters.connections
    record = bench.record()
    assert (record["status"], record["reason"]) == ("Failed", "not-started")
    assert "cannot be reached" in record["reason_text"]
    assert bench.run("history", "list").code == 0
    assert bench.box.link.counters.connections == before
