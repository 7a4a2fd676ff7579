"""Cancel, time limits, hostile process trees, and deaths of the processes that own a run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess

from holdfast.farside.containers.removal import is_launcher_alive
from kit.waiting import wait_for

from .conftest import is_gone

SLEEPER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n"


def test_cancel_sends_sigterm_and_gives_time_for_a_checkpoint(bench):
    bench.write(
        "train.py",
        """
        import signal, sys, time
        def save(*_):
            time.sleep(0.3)
            open("outputs/checkpoint", "w").write("saved")
            print("saved", flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, save)
        print("up", flush=True)
        while True:
            time.sleep(0.05)
        """,
    )
    run_id = bench.start("train.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    result = bench.run("cancel", "-r", run_id)
    assert result.code == 0
    assert "Status: Canceled" in result.err
    assert (bench.near(run_id) / "outputs" / "checkpoint").read_text() == "saved"
    assert bench.record(run_id)["reason"] == "canceled"
    again = bench.run("cancel", "-r", run_id)
    assert again.code == 0, "a run that has ended is left as it is"


HOSTILE = """
import os, signal, sys, time

def daemon(number):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for descriptor in range(3, 64):
        try:
            os.close(descriptor)
        except OSError:
            pass
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")
    open(sys.argv[1] + "/%d-%d" % (number, os.getpid()), "w")
    os.execve(sys.executable, ["innocent", "-c",
        "import signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: time.sleep(60)"], {})

for number in range(5):
    daemon(number)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while len(os.listdir(sys.argv[1])) < 5:
    time.sleep(0.01)
print("up", flush=True)
"""


def _hostile(bench, tmp_path, tail: str, *options: str) -> tuple[str, list[int]]:
    marks = tmp_path / "marks"
    marks.mkdir()
    bench.write("hostile.py", HOSTILE + tail)
    run_id = bench.start(*options, "hostile.py", str(marks))
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    return run_id, [int(each.name.partition("-")[2]) for each in marks.iterdir()]


def test_every_process_of_a_hostile_tree_is_gone_after_cancel_and_named_in_the_record(bench, tmp_path):
    run_id, pids = _hostile(bench, tmp_path, "while True: time.sleep(60)\n")
    result = bench.run("cancel", "-r", run_id, "--grace", "1s")
    assert result.code == 0, result.err
    assert all(is_gone(pid) for pid in pids)
    ended = {each["pid"] for each in bench.record(run_id)["ended_processes"]}
    assert set(pids) <= ended


def test_processes_left_behind_by_a_script_that_ended_are_ended_too(bench, tmp_path):
    run_id, pids = _hostile(bench, tmp_path, "", "--grace", "1s")
    result = bench.run("logs", "-f", "-r", run_id)
    assert result.code == 0
    assert all(is_gone(pid) for pid in pids)
    assert "Processes left behind were ended" in result.err
    assert bench.record(run_id)["reason"] == "completed"


def test_the_time_limit_ends_a_script_that_ignores_sigterm(bench):
    bench.write("t.py", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER)
    result = bench.submit("--time-limit", "0.5s", "--grace", "0.2s", "t.py")
    assert result.code == 248
    assert "reached its time limit" in result.err
    assert bench.record()["reason"] == "time-limit"


def test_ctrl_c_detaches_and_says_how_to_follow_and_to_cancel(bench):
    bench.write("t.py", SLEEPER)
    client = bench.popen("submit", "t.py", start_new_session=True)
    assert client.stdout is not None
    assert client.stdout.readline() == b"up\n"
    os.killpg(client.pid, signal.SIGINT)
    _, err = client.communicate(timeout=60)
    run_id = err.decode().splitlines()[0].removeprefix("RunId: ")
    assert client.returncode == 253
    assert f"holdfast logs -f -r {run_id}" in err.decode()
    assert f"holdfast cancel -r {run_id}" in err.decode()
    assert bench.holder(run_id, 1), "the run goes on"
    status = bench.run("status", "-r", run_id, "-o", "json")
    assert json.loads(status.out)["status"] == "Running"
    assert bench.run("cancel", "-r", run_id, "--grace", "0").code == 0


def test_a_client_killed_with_9_changes_nothing_for_the_run(bench):
    bench.write("t.py", "import time\nprint('a', flush=True)\ntime.sleep(0.5)\nprint('b', flush=True)\n")
    client = bench.popen("submit", "t.py")
    assert client.stdout is not None
    assert client.stdout.readline() == b"a\n"
    client.kill()
    client.communicate()
    result = bench.run("logs", "-f")
    assert (result.code, result.out) == (0, "a\nb\n")


def test_two_followers_see_every_line_once(bench):
    bench.write("t.py", "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.01)\n")
    run_id = bench.start("t.py")
    followers = [bench.popen("logs", "-f", "-r", run_id) for _ in range(3)]
    expected = "".join(f"{i}\n" for i in range(40)).encode()
    assert [follower.communicate(timeout=60)[0] for follower in followers] == [expected] * 3


def test_a_supervisor_killed_with_9_is_recorded_and_its_guardian_ends_the_run(bench, tmp_path):
    run_id, pids = _hostile(bench, tmp_path, "while True: time.sleep(60)\n")
    os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    bench.event(run_id, "ended")
    result = bench.run("logs", "-f", "-r", run_id)
    assert result.code == 249
    assert "The supervisor of the run died" in result.err
    assert all(is_gone(pid) for pid in pids)
    assert bench.record(run_id)["reason"] == "supervisor-died"


def test_a_guardian_killed_with_9_does_not_stop_the_run(bench):
    bench.write("t.py", "import os, time\nwhile not os.path.exists('../go'):\n    time.sleep(0.01)\nprint('end')\n")
    run_id = bench.start("t.py")
    assert bench.holder(run_id, 1), "a guardian is there before its supervisor"
    os.kill(bench.holder(run_id, 0), signal.SIGKILL)
    (bench.far(run_id) / "go").write_text("")
    result = bench.run("logs", "-f", "-r", run_id)
    assert (result.code, result.out) == (0, "end\n")


def test_with_guardian_and_supervisor_gone_the_next_look_says_so_and_ends_what_carries_the_mark(bench):
    bench.write(
        "t.py", "import subprocess, sys\nsubprocess.Popen(['sleep', '300'], start_new_session=True)\n" + SLEEPER
    )
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    script = bench.event(run_id, "started")["pid"]
    sleeper = int(subprocess.run(["pgrep", "-P", str(script)], capture_output=True, text=True).stdout)
    bench.kill_owners(run_id)
    record = bench.record(run_id)
    assert record["reason"] == "supervisor-died"
    wait_for(lambda: is_gone(script) and is_gone(sleeper))


def test_a_reboot_is_told_from_a_death(bench):
    bench.write("t.py", SLEEPER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    script = bench.event(run_id, "started")["pid"]
    bench.kill_owners(run_id)
    result = bench.run("status", "-r", run_id, "-o", "json", env={"HOLDFAST_BOOT_ID": "another"})
    with contextlib.suppress(ProcessLookupError):
        os.kill(script, signal.SIGKILL)  # a restart would have ended it
    assert json.loads(result.out)["reason"] == "host-rebooted"


def test_a_supervisor_told_to_stop_ends_its_run_in_order(bench):
    bench.write("t.py", SLEEPER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    os.kill(bench.holder(run_id, 1), signal.SIGTERM)
    result = bench.run("logs", "-f", "-r", run_id)
    assert result.code == 249
    assert bench.record(run_id)["reason"] == "stopped"


def test_clean_never_touches_a_living_run(bench):
    bench.write("t.py", SLEEPER)
    run_id = bench.start("t.py")
    result = bench.run("experiment", "clean", "--all")
    assert "kept" in result.err
    assert bench.far(run_id).is_dir()
    assert bench.run("cancel", "-r", run_id, "--grace", "0").code == 0
    assert "removed" in bench.run("experiment", "clean", "--all").err
    assert not list(bench.home.glob(f"runs/*/{run_id}"))
    assert bench.record(run_id)["status"] == "Canceled", "the history stays"


def test_a_run_that_is_gone_from_its_machine_is_lost_and_not_completed(bench):
    import shutil

    bench.write("t.py", SLEEPER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    script = bench.event(run_id, "started")["pid"]
    bench.run("status", "-r", run_id)
    bench.kill_owners(run_id)
    wait_for(lambda: is_gone(script), what="the script ends with its supervisor")
    inside = bench.far(run_id) / "inside"
    wait_for(lambda: not is_launcher_alive(str(inside)), what="the launcher of its container writes no more")
    shutil.rmtree(bench.far(run_id))
    assert bench.record(run_id)["reason"] == "lost"


WORKERS = """
import os, signal, sys, time
if os.fork() == 0:
    def save(*_):
        time.sleep(3)
        open("outputs/checkpoint", "w").write("saved")
        os._exit(0)
    signal.signal(signal.SIGTERM, save)
    print("worker", flush=True)
    while True:
        time.sleep(0.05)
while True:
    time.sleep(0.05)
"""


def test_the_grace_time_is_also_for_the_scripts_children(bench):
    bench.write("t.py", WORKERS)
    run_id = bench.start("--grace", "30s", "t.py")
    wait_for(lambda: b"worker" in (bench.far(run_id) / "driver_log").read_bytes())
    assert bench.run("cancel", "-r", run_id).code == 0
    assert (bench.near(run_id) / "outputs/checkpoint").read_text() == "saved"


def test_without_a_name_runs_that_ended_without_a_cancel_are_not_meant(bench):
    bench.write("short.py", "")
    bench.write("long.py", SLEEPER)
    for ended in [bench.start("short.py"), bench.start("short.py")]:
        bench.event(ended, "ended")
    run_id = bench.start("long.py")
    bench.event(run_id, "started")
    done = bench.run("cancel", "--grace", "0")
    assert done.code == 0, done.err
    assert bench.event(run_id, "ended")["reason"] == "canceled"


def test_a_second_cancel_can_shorten_the_grace_time(bench):
    bench.write("t.py", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    bench.run("cancel", "-r", run_id, "--grace", "10m", "--no-wait")
    bench.event(run_id, "ending")
    assert bench.run("cancel", "-r", run_id, "--grace", "0").code == 0
    assert bench.record(run_id)["reason"] == "canceled"


def test_a_run_that_ignores_sigterm_is_seen_to_be_canceled_until_it_ends(bench):
    bench.write("t.py", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER)
    run_id = bench.start("t.py")
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    asked = bench.run("cancel", "--grace", "10m", "--no-wait")
    assert asked.err == f"Canceling {run_id} (t.py on local) …\nAsked the run to end.\n"
    bench.event(run_id, "ending")
    shown = bench.run("status", "-o", "json", "--query", "[status, phase]")
    assert json.loads(shown.out) == ["Running", "being canceled: 10m to finish"]
    waiting = bench.popen("cancel", start_new_session=True)
    assert waiting.stderr.readline().decode() == f"Canceling {run_id} (t.py on local) …\n"
    assert waiting.stderr.readline().decode() == "It has 10m to finish.\n"
    waiting.send_signal(signal.SIGINT)
    said = waiting.communicate(timeout=60)[1].decode()
    assert (waiting.returncode, said.splitlines()[0].rpartition(" ")[2]) == (253, run_id)
    ended = bench.run("cancel", "--grace", "0")
    assert ended.err.splitlines()[1] == "It has 0s to finish."
    assert "nothing was canceled. Status: Canceled after" in bench.run("cancel", "-r", run_id).err


def test_a_time_limit_of_months_is_no_problem(bench):
    bench.write("t.py", "import time\ntime.sleep(0.2)\nprint('done')\n")
    result = bench.submit("--time-limit", "90d", "--grace", "40d", "t.py")
    assert (result.code, result.out) == (0, "done\n")


def test_cancel_of_a_run_that_never_reached_its_host_settles_it(bench):
    import shutil

    bench.write("t.py", "")
    run_id = bench.start("t.py")
    bench.event(run_id, "ended")
    bench.until_left(run_id)
    near = bench.near(run_id)
    for name in ("journal.jsonl", "collected.json"):
        (near / name).unlink(missing_ok=True)
    shutil.rmtree(bench.far(run_id))
    result = bench.run("cancel", "-r", run_id)
    assert result.code == 0, result.err
    assert bench.record(run_id)["reason"] == "not-started"
