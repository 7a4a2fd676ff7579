"""What commands do with runs that are being ended, have ended or live; how runs end is in `integration/products`."""

from __future__ import annotations

import contextlib
import json
import os
import signal

SLEEPER = "import time\nprint('up', flush=True)\nwhile True:\n    time.sleep(0.05)\n"


def test_two_followers_see_every_line_once(bench):
    bench.write("t.py", "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.01)\n")
    run_id = bench.start("t.py")
    followers = [bench.popen("logs", "-f", "-r", run_id) for _ in range(3)]
    expected = "".join(f"{i}\n" for i in range(40)).encode()
    assert [follower.communicate(timeout=60)[0] for follower in followers] == [expected] * 3


def test_a_reboot_is_told_from_a_death(bench):
    run_id = bench.begin(SLEEPER)
    script = bench.event(run_id, "started")["pid"]
    bench.kill_owners(run_id)
    result = bench.run("status", "-r", run_id, "-o", "json", env={"HOLDFAST_BOOT_ID": "another"})
    with contextlib.suppress(ProcessLookupError):
        os.kill(script, signal.SIGKILL)  # a restart would have ended it
    assert json.loads(result.out)["reason"] == "host-rebooted"


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


def test_a_run_that_ignores_sigterm_is_seen_to_be_canceled_until_it_ends(bench):
    run_id = bench.begin("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER)
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
