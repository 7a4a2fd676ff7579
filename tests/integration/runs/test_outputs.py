"""What scripts do to their outputs, and what is fetched of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from kit.waiting import wait_for


def test_outputs_that_are_a_link_elsewhere_are_told_and_do_not_harm_the_run(bench, tmp_path):
    (tmp_path / "scratch").mkdir()
    bench.write(
        "t.py",
        f"""
        import os
        os.rmdir("outputs")
        os.symlink({str(tmp_path / "scratch")!r}, "outputs")
        open("outputs/x", "w")
        """,
    )
    result = bench.submit("t.py")
    assert result.code == 0
    assert f"`{tmp_path / 'scratch'}`" in result.err
    assert bench.run("experiment", "clean", "--all").code == 0
    assert (tmp_path / "scratch/x").exists()


def test_a_stray_file_among_the_metrics_does_not_stop_anything(bench):
    bench.write(
        "t.py",
        "import os\nopen(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/metrics/my file.jsonl', 'w').write('x')\nprint(1)\n",
    )
    result = bench.submit("t.py")
    assert (result.code, result.out) == (0, "1\n")


def test_a_damaged_object_in_the_store_is_noticed_before_the_script_runs(bench):
    bench.write("t.py", "print('right')\n")
    assert bench.submit("t.py").out == "right\n"
    for path in (bench.root / ".holdfast/objects").glob("??/*"):
        if path.read_bytes() == b"print('right')\n":
            path.chmod(0o644)
            path.write_bytes(b"print('wrong')\n")
    result = bench.submit("t.py")
    assert "wrong" not in result.out
    assert result.code == 244
    assert "damaged in the store" in result.err


def test_an_ending_that_this_version_does_not_know_is_a_failure_whose_outputs_come_home(bench):
    bench.write("t.py", "open('outputs/x', 'w').write('kept')\n")
    run_id = bench.start("t.py")
    bench.event(run_id, "ended")
    bench.until_left(run_id)  # its guardian reads the journal, too
    journal = bench.far(run_id) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"completed"', b'"moonstruck"'))
    result = bench.run("logs", "-f", "-r", run_id)
    assert result.code == 249
    assert "moonstruck" in result.err
    record = bench.record(run_id)
    assert record["status"] == "Failed"
    assert (bench.near(run_id) / "outputs/x").read_text() == "kept"


def test_a_reader_that_takes_nothing_does_not_keep_the_run_from_coming_home(bench):
    """As in `holdfast submit | less`: the pipe is full and has no reader."""
    bench.write("t.py", "for i in range(50000):\n    print('line', i)\nopen('outputs/x', 'w').write('kept')\n")
    client = bench.popen("submit", "t.py")
    run_id = wait_for(lambda: next(iter(each.name for each in (bench.root / ".holdfast/runs").glob("*_*[0-9]")), None))
    wait_for((bench.near(run_id) / "collected.json").exists)
    assert bench.record(run_id)["status"] == "Completed"
    assert client.poll() is None, "it still waits for its reader"
    out, _ = client.communicate(timeout=60)
    assert out.count(b"\n") == 50000


def test_a_stopped_client_is_named_and_cancel_still_works(bench):
    bench.write("t.py", "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n")
    client = bench.popen("submit", "t.py")
    assert client.stdout is not None
    assert client.stdout.readline() == b"up\n"
    os.kill(client.pid, signal.SIGSTOP)
    os.waitpid(client.pid, os.WUNTRACED)
    try:
        status = bench.run("status")
        assert f"process {client.pid}" in status.err
        result = bench.run("cancel", "-r", "last", "--grace", "0")
        assert result.code == 0
        assert "is stopped" in result.err
        run_id = json.loads(status.out)["run_id"]
        assert bench.event(run_id, "ended")["reason"] == "canceled"
    finally:
        os.kill(client.pid, signal.SIGCONT)
    client.communicate(timeout=60)
    assert client.returncode == 247


def test_a_log_that_restarts_while_it_is_followed_is_not_spliced(bench):
    bench.write(
        "t.py",
        """
        import os, time
        print("first part", flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            time.sleep(0.01)
        print("second part", flush=True)
        """,
    )
    run_id = bench.start("t.py")
    follower = bench.popen("logs", "-f", "-r", run_id)
    assert follower.stdout is not None
    assert follower.stdout.readline() == b"first part\n"
    with (bench.far(run_id) / "driver_log").open("r+b") as file:
        file.truncate(0)
    (bench.far(run_id) / "go").write_text("")
    out, _ = follower.communicate(timeout=60)
    assert out == b"second part\n", "shown from its new beginning"


def test_a_run_started_inside_a_run_outlives_it(bench):
    bench.write("child.py", "import time\ntime.sleep(1)\nprint('child ends')\n")
    bench.write(
        "parent.py",
        f"""
        import subprocess
        subprocess.run([{sys.executable!r}, "-m", "holdfast", "submit", "-a", "child.py"], cwd={str(bench.root)!r})
        """,
    )
    assert bench.submit("parent.py").code == 0
    runs = json.loads(bench.run("history", "list", "-o", "json").out)
    child = next(run["run_id"] for run in runs if run["script_name"] == "child.py")
    result = bench.run("logs", "-f", "-r", child)
    assert (result.code, result.out) == (0, "child ends\n"), result.err


def test_a_look_at_the_history_during_submits_never_harms_one(bench):
    bench.write("t.py", "print('ran')\n")
    looks = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess\nfor _ in range(12): subprocess.run([{sys.executable!r}, '-m', "
         "'holdfast', 'history', 'list'], capture_output=True)"],
        cwd=bench.root,
    )  # fmt: skip
    results = [bench.submit("t.py") for _ in range(8)]
    looks.wait()
    assert [(result.code, result.out) for result in results] == [(0, "ran\n")] * 8
