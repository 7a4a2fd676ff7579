"""A run on a box: what the script gets, what comes home, how it ends, and what it does not depend on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from integration.remote.benches import SHARE_LINE, FarBench, far_bench, watched  # noqa: F401 - a fixture
from kit import processes
from kit.files import holding
from kit.waiting import wait_for

MakeBench = Callable[..., FarBench]
SECRET = "s3cr3t-value-äöü"

WAITING = f"""
import os, time
{SHARE_LINE}
print("first", flush=True)
while not os.path.exists("../go"):
    time.sleep(0.01)
print("second", flush=True)
open("outputs/result", "w").write("whole")
"""


@pytest.fixture
def bench(far_bench: MakeBench) -> FarBench:  # noqa: F811
    return far_bench()


def _let_go(bench: FarBench, run_id: str) -> None:
    (bench.far(run_id) / "go").write_text("")


def _has_printed(bench: FarBench, run_id: str, text: str = "first\n") -> bool:
    return any(path.read_text() == text for path in bench.home.glob(f"runs/*/{run_id}/driver_log"))


def test_output_metrics_outputs_and_uploads_come_home(bench: FarBench) -> None:
    bench.write("part/data.txt", "from the project")
    bench.write(
        "train.py",
        """
        import os, sys, holdfast
        print("at", os.getcwd())
        print(open("part/data.txt").read(), sys.argv[1:], file=sys.stderr)
        holdfast.log("loss", 0.5)
        holdfast.log("loss", 0.25)
        os.makedirs("outputs/deep/er")
        open("outputs/deep/er/model", "w").write("weights")
        holdfast.upload("note.txt", "a note")
        """,
    )
    done = bench.submit("train.py", "--epochs", "3", "a b", "$HOME", "'q\"", "ä\n")
    assert done.code == 0, done.err
    (run_id,) = bench.near_ids()
    where = bench.far(run_id) / "work"
    words = ["--epochs", "3", "a b", "$HOME", "'q\"", "ä\n"]
    assert done.out == f"at {where}\nfrom the project {words}\n"
    record = bench.record(run_id)
    assert record["metrics"]["loss"] == 0.25
    assert (record["target"], record["target_type"], record["status"]) == ("gpu1", "remote", "Completed")
    near = bench.near(run_id)
    assert (near / "outputs/deep/er/model").read_text() == "weights"
    assert (near / "uploads/note.txt").read_text() == "a note"
    for name in ("journal.jsonl", "driver_log"):
        assert (near / name).read_bytes() == (bench.far(run_id) / name).read_bytes()
    assert bench.far(run_id).stat().st_uid == bench.box.account.uid


@pytest.mark.parametrize(
    "script, code, reason",
    [
        ("import sys; sys.exit(7)", 7, "exit-code"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 139, "signal"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "killed"),
        ("raise SystemExit(255)", 255, "exit-code"),
    ],
)
def test_submit_ends_with_the_scripts_own_code(bench: FarBench, script: str, code: int, reason: str) -> None:
    bench.write("t.py", script)
    assert bench.submit("t.py").code == code
    record = bench.record()
    assert (record["status"], record["reason"]) == ("Failed", reason)


def test_a_run_is_canceled_without_the_connection_that_started_it(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    with watched(bench.submitting("t.py")) as client:
        wait_for(lambda: bench.near_ids() and _has_printed(bench, bench.near_ids()[0]), what="the script runs")
        client.kill()
    (run_id,) = bench.near_ids()
    bench.box.link.cut()
    assert bench.run("cancel", "-r", run_id, "--grace", "0s").code == 0
    record = bench.record(run_id)
    assert (record["status"], record["reason"]) == ("Canceled", "canceled")
    assert bench.run("logs", "-r", run_id).out == "first\n"
    names = [process.argv for process in bench.box.account.processes()]
    assert not any("t.py" in " ".join(argv) for argv in names), names


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


def test_a_time_limit_ends_the_run_on_the_box(bench: FarBench) -> None:
    bench.write("t.py", "import time\nprint('up', flush=True)\nwhile True: time.sleep(1)\n")
    done = bench.submit("--time-limit", "10s", "--grace", "0s", "t.py")
    assert (done.code, done.out) == (248, "up\n")
    assert bench.record()["reason"] == "time-limit"


def test_a_secret_is_never_on_the_boxs_disk_nor_in_sight_of_others(bench: FarBench) -> None:
    bench.write(
        "t.py",
        """
        import os, time
        value = os.environ["TOKEN"]
        print(len(value), value, flush=True)
        while not os.path.exists("../go"):
            time.sleep(0.01)
        """,
    )
    run_id = bench.start("--secret", "TOKEN", "t.py", env={"TOKEN": SECRET})
    wait_for(lambda: _has_printed(bench, run_id, f"{len(SECRET)} ***\n"), what="the script runs")
    theirs = bench.box.account.processes()
    script = bench.event(run_id, "started")["pid"]
    assert any(f"TOKEN={SECRET}" in each.environment for each in theirs if each.pid == script)
    for each in theirs:
        assert SECRET not in " ".join(each.argv)
        assert each.pid == script or SECRET not in " ".join(each.environment), each.argv
    _let_go(bench, run_id)
    assert bench.run("logs", "-f", "-r", run_id).out == f"{len(SECRET)} ***\n"
    assert holding(SECRET, bench.box.account.home, bench.root, bench.box.server.log.parent) == []


def test_several_boxes_work_at_once(far_bench: MakeBench) -> None:  # noqa: F811
    benches = [far_bench(f"gpu{number}") for number in range(1, 4)]
    benches[0].write("t.py", "import os\nprint(os.environ['HOLDFAST_TARGET'], os.path.expanduser('~'))\n")
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda each: each.submit("t.py"), benches))
    assert [each.out for each in results] == [f"{each.box.name} {each.box.account.home}\n" for each in benches]
    for each in benches:
        assert len(list(each.home.glob("runs/*/*_*"))) == 1


def test_an_async_submit_returns_while_the_script_runs_and_logs_follow_it_later(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    run_id = bench.start("t.py")
    assert not (bench.far(run_id) / "go").exists()
    wait_for(lambda: _has_printed(bench, run_id), what="the script runs")
    with watched(bench.popen("logs", "-f", "-r", run_id)) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"first\n"
        _let_go(bench, run_id)
        assert follower.communicate(timeout=60)[0] == b"second\n"
        assert follower.returncode == 0
    assert (bench.near(run_id) / "outputs/result").read_text() == "whole"


def test_the_run_holds_no_session_of_ssh(bench: FarBench) -> None:
    """The connection that Holdfast keeps open for the next command has no session left, and can go."""
    bench.write("t.py", WAITING)
    run_id = bench.start("t.py")
    wait_for(lambda: _has_printed(bench, run_id), what="the script runs")
    bench.box.link.cut()
    wait_for(lambda: bench.box.server.connections() == 0, what="no connection is left")
    script = bench.event(run_id, "started")["pid"]
    assert processes.is_alive(script)
    _let_go(bench, run_id)
    assert bench.run("logs", "-f", "-r", run_id).out == "first\nsecond\n"


def test_variables_of_the_run_configuration_reach_the_script_as_they_are(bench: FarBench) -> None:
    bench.attach(
        bench.box,
        runconfig="""
        EnvironmentVariables:
          COLOUR: green and 'blue' "$HOME" {home} `id`
          LINES_OF: "a\\nb\\\\"
          EMPTY: ""
          UMLAUT: äöü
        """,
    )
    bench.write("t.py", "import os\nprint([os.environ[n] for n in ('COLOUR', 'LINES_OF', 'EMPTY', 'UMLAUT')])\n")
    expected = ["green and 'blue' \"$HOME\" {home} `id`", "a\nb\\", "", "äöü"]
    assert bench.submit("t.py").out == f"{expected}\n"


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


def test_hostile_file_names_travel_both_ways(bench: FarBench) -> None:
    names = [
        b"a b",
        b"-rf",
        b"new\nline",
        b"tab\t",
        b"quote'\"`$(id)",
        b"\xff\xfe",
        "ä\u202e".encode(),
        b"*",
        b"\\",
        b"#",
    ]
    for name in names:
        (bench.root / os.fsdecode(name)).write_bytes(name)
    bench.write(
        "t.py",
        """
        import os
        for name in os.listdir(b"."):
            if os.path.isfile(name) and name != b"t.py":
                assert open(name, "rb").read() == name, name
                open(b"outputs/" + name, "wb").write(name[::-1])
        print(len(os.listdir("outputs")))
        """,
    )
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, f"{len(names)}\n"), done.err
    outputs = bench.near(bench.near_ids()[0]) / "outputs"
    assert {os.fsencode(each.name): each.read_bytes() for each in outputs.iterdir()} == {
        name: name[::-1] for name in names
    }


def test_any_bytes_of_output_arrive_as_they_were(bench: FarBench) -> None:
    data = bytes(range(256)) * 40 + b"\r\n\0\x1b[31m" + b"HOLDFAST 00\n" + b"no newline at the end"
    bench.write("t.py", f"import sys\nsys.stdout.buffer.write({data!r})\n")
    with watched(bench.submitting("t.py")) as client:
        assert client.communicate(timeout=60)[0] == data
    assert (bench.near(bench.near_ids()[0]) / "driver_log").read_bytes() == data


def test_ten_thousand_lines_arrive_in_order(bench: FarBench) -> None:
    bench.write("t.py", "for number in range(10000):\n    print('line', number)\n")
    assert bench.submit("t.py").out == "".join(f"line {number}\n" for number in range(10000))


@pytest.mark.parametrize("body", ["", "open('outputs/empty', 'w').close()"])
def test_a_run_without_outputs_or_with_an_empty_one_is_complete(bench: FarBench, body: str) -> None:
    bench.write("t.py", body + "\n")
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, "")
    outputs = bench.near(bench.near_ids()[0]) / "outputs"
    found = sorted(each.name for each in outputs.iterdir()) if outputs.is_dir() else []
    assert found == (["empty"] if body else [])


def test_a_script_that_daemonizes_holds_neither_the_session_nor_the_box(bench: FarBench) -> None:
    bench.write(
        "t.py",
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        print("gone")
        """,
    )
    done = bench.submit("--grace", "0s", "t.py")
    assert (done.code, done.out) == (0, "gone\n")
    left = [each.argv for each in bench.box.account.processes() if "t.py" in " ".join(each.argv)]
    assert left == []


def test_a_killed_client_changes_nothing_for_the_run(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    with watched(bench.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"first\n"
        client.kill()
    (run_id,) = bench.near_ids()
    assert bench.run("status", "-r", run_id, "-o", "tsv", "--query", "status").out == "Running\n"
    _let_go(bench, run_id)
    done = bench.run("logs", "-f", "-r", run_id)
    assert (done.code, done.out) == (0, "first\nsecond\n")
    assert bench.starts() == [run_id]


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


def test_ctrl_c_only_detaches(bench: FarBench) -> None:
    bench.write("t.py", WAITING)
    with watched(bench.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"first\n"
        client.send_signal(signal.SIGINT)
        err = client.communicate(timeout=60)[1].decode()
    (run_id,) = bench.near_ids()
    assert client.returncode == 253, err
    assert f"holdfast logs -f -r {run_id}" in err
    _let_go(bench, run_id)
    assert bench.run("logs", "-f", "-r", run_id).out == "first\nsecond\n"


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
