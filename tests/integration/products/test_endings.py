"""How a run is ended, and what it survives, the same on each product. `conftest.py` says which are tried."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from holdfast.farside.system.launcher_lock import launcher_of
from integration.products.test_runs import WAITING
from integration.runs.conftest import is_gone
from kit import processes
from kit.waiting import wait_for

SLEEPER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n"
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
SAVING = """
import os, signal, time
def saving(name, seconds):
    def save(*_):
        time.sleep(seconds)
        open("outputs/" + name, "w").write("saved")
        os._exit(0)
    signal.signal(signal.SIGTERM, save)
saving("script", 0.3)
if os.fork() == 0:
    saving("worker", 3)
    print("up", flush=True)
while True:
    time.sleep(0.05)
"""


def test_cancel_gives_the_script_and_its_workers_time_for_a_checkpoint(bench):
    run_id = bench.begin(SAVING, "--grace", "30s")
    result = bench.run("cancel", "-r", run_id)
    assert result.code == 0
    assert "Status: Canceled" in result.err
    assert [(bench.near(run_id) / "outputs" / name).read_text() for name in ("script", "worker")] == ["saved"] * 2
    last = bench.event(run_id, "ended")
    assert (last["reason"], last["code"]) == ("canceled", 0)
    assert bench.run("cancel", "-r", run_id).code == 0, "a run that has ended is left as it is"
    bench.until_nothing_is_left(run_id)


HIDING = """
import os, signal, sys
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(3, 64)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.chdir("/")
            code = "import signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: time.sleep(60)"
            os.execve(sys.executable, ["innocent", "-c", code, "TOKEN"], {})
        os._exit(0)
"""


def test_a_second_cancel_shortens_the_grace_time_and_ends_what_hides_and_will_not_go(bench, tmp_path):
    """`faults/test_hostile_trees.py` has worse trees and all other ends."""
    run_id = bench.begin(HIDING.replace("TOKEN", str(tmp_path)) + DEAF + SLEEPER)

    def hidden():
        return [each.pid for each in processes.every() if each.is_alive and each.argv[-1:] == [str(tmp_path)]]

    wait_for(lambda: len(hidden()) == 5)
    bench.run("cancel", "-r", run_id, "--grace", "10m", "--no-wait")
    bench.event(run_id, "ending")
    assert bench.run("cancel", "-r", run_id, "--grace", "0").code == 0
    assert hidden() == []
    record = bench.record(run_id)
    assert record["reason"] == "canceled"
    assert len(record["ended_processes"]) >= 5, "in a container the script is one of them"
    bench.until_nothing_is_left(run_id)


def test_what_a_script_leaves_behind_is_ended_and_named(bench):
    bench.write("t.py", "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\n")
    result = bench.submit("t.py")
    assert result.code == 0
    assert "Processes left behind were ended" in result.err
    record = bench.record()
    assert [(each["name"], each["signal"]) for each in record["ended_processes"]] == [("sleep", "SIGTERM")]
    bench.until_nothing_is_left(record["run_id"])


def test_the_time_limit_ends_a_script_that_ignores_sigterm(bench):
    bench.write("t.py", DEAF + SLEEPER)
    result = bench.submit("--time-limit", "0.5s", "--grace", "0.2s", "t.py")
    assert result.code == 248
    assert "reached its time limit" in result.err
    record = bench.record()
    assert record["reason"] == "time-limit"
    bench.until_nothing_is_left(record["run_id"])


def test_ctrl_c_detaches_and_a_killed_client_changes_nothing_for_the_run(bench):
    bench.write("t.py", WAITING)
    client = bench.popen("submit", "t.py", start_new_session=True)
    assert client.stdout.readline() == b"first\n"
    os.killpg(client.pid, signal.SIGINT)
    err = client.communicate(timeout=60)[1].decode()
    run_id = err.splitlines()[0].removeprefix("RunId: ")
    assert client.returncode == 253
    assert f"holdfast logs -f -r {run_id}" in err
    assert f"holdfast cancel -r {run_id}" in err
    follower = bench.popen("logs", "-f", "-r", run_id)
    assert follower.stdout.readline() == b"first\n"
    follower.kill()
    follower.communicate()
    assert bench.run("status", "-r", run_id, "-o", "tsv", "--query", "status").out == "Running\n"
    (bench.there(run_id) / "go").touch()
    result = bench.run("logs", "-f", "-r", run_id)
    assert (result.code, result.out) == (0, "first\nsecond\n")
    assert [path.read_text() for path in bench.home.glob("share/*/starts")] == ["x"]


@pytest.mark.parametrize(
    ("owners", "number", "code", "reason"),
    [
        ((0,), signal.SIGKILL, 0, "completed"),
        ((1,), signal.SIGKILL, 249, "supervisor-died"),
        ((0, 1), signal.SIGKILL, 249, "supervisor-died"),
        ((1,), signal.SIGTERM, 249, "stopped"),
    ],
    ids=["guardian", "supervisor", "both", "told to stop"],
)
def test_a_run_without_its_guardian_goes_on_and_without_its_supervisor_is_ended(bench, owners, number, code, reason):
    script = "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)\n" + WAITING
    run_id = bench.begin(script, until="first\n")
    pids = [bench.holder(run_id, byte) for byte in (0, 1)]
    for byte in owners:
        os.kill(pids[byte], number)
    if reason == "completed":
        (bench.there(run_id) / "go").touch()
    result = bench.run("logs", "-f", "-r", run_id)
    assert (result.code, bench.record(run_id)["reason"]) == (code, reason)
    assert result.out == ("first\nsecond\n" if reason == "completed" else "first\n")
    assert ("The supervisor of the run died" in result.err) is (reason == "supervisor-died")
    bench.until_nothing_is_left(run_id)


def test_a_run_that_is_gone_from_its_machine_is_lost_and_not_completed(bench):
    run_id = bench.begin(SLEEPER)
    script = bench.event(run_id, "started")["pid"]
    bench.run("status", "-r", run_id)
    bench.kill_owners(run_id)
    wait_for(lambda: is_gone(script), what="the script ends with its supervisor")
    inside = bench.far(run_id) / "inside"
    wait_for(lambda: launcher_of(str(inside)) is None, what="the launcher of its container writes no more")
    shutil.rmtree(bench.far(run_id))
    assert bench.record(run_id)["reason"] == "lost"
