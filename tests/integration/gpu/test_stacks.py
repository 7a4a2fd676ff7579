"""`experiment stacks` on every product: a run that hangs says where."""

from __future__ import annotations

import json
import os
import signal

import pytest

from kit.waiting import wait_for

bare_and_contained = pytest.mark.parametrize("target", ["local", "docker"])
"""Beyond the link, only the container makes a difference."""
LATE = ("It did not answer", "A process before it", "Not asked")
HANGS = """\
import multiprocessing, os, subprocess, sys, threading

def loads(ready):
    ready.release()
    threading.Event().wait()

def hangs_in_a_thread(lock):
    with lock:
        pass

def waits_for_its_thread():
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=hangs_in_a_thread, args=(lock,), daemon=True).start()
    subprocess.Popen(["sleep", "600"])
    subprocess.Popen([sys.executable, "-I", "-c", "import time; print('waits', flush=True); time.sleep(600)"])
    lock.acquire()

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        ready = context.Semaphore(0)
        context.Process(target=loads, args=(ready,), daemon=True).start()
        ready.acquire()
    waits_for_its_thread()
"""


def test_a_run_that_hangs_shows_where_each_of_its_processes_is(bench, target):
    run = hanging(bench)
    found = stacks(bench, run)
    script, *others = found
    assert "hang.py" in script["command"]
    assert "in hangs_in_a_thread\n" in script["stack"]
    assert "in waits_for_its_thread\n" in script["stack"]
    loaders = [each for each in others if each["stack"] and "in loads\n" in each["stack"]]
    assert len(loaders) == 2
    assert all(each["stack"].count("Current thread") == 1 for each in found if each["stack"])
    reasons = {each["name"]: each["why"] for each in others if not each["stack"]}
    assert reasons.pop("sleep") not in ("", *reasons.values())
    assert [reason.partition(":")[0] for reason in reasons.values()] == ["This Python does not listen"]
    names = {each["name"] for each in found}
    assert not any(name.startswith("hf-") for name in names), names
    shown = bench.run("experiment", "stacks", "-r", run, "-o", "table", timeout=120)
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"{script['pid']} {script['name']} (sleeping): ")
    assert any("most recent call first" in line for line in lines)
    sleep = next(each for each in others if each["name"] == "sleep")
    assert f"{sleep['pid']} sleep (sleeping): no stack." in shown.out
    assert bench.run("cancel", "-r", run, timeout=120).code == 0
    assert "ended" in {event["e"] for event in bench.journal(run)}


@bare_and_contained
def test_asking_leaves_a_run_as_it_was(bench, target):
    bench.write(
        "t.py",
        """\
        import os, subprocess, time
        print("begins", flush=True)
        while not os.path.exists("go-on"):
            time.sleep(0.01)
            subprocess.run(["true"], check=True)
        print("ends")
        """,
    )
    run = bench.start("t.py", timeout=300)
    wait_for(lambda: b"begins" in (bench.far(run) / "driver_log").read_bytes(), 60)
    for _ in range(5):
        assert "t.py" in stacks(bench, run)[0]["stack"]
    (bench.there(run) / "go-on").touch()
    ended = bench.event(run, "ended")
    assert (ended["reason"], ended["code"]) == ("completed", 0)
    assert (bench.far(run) / "driver_log").read_bytes() == b"begins\nends\n"


@bare_and_contained
def test_a_stopped_script_is_said_to_be_stopped(bench, target):
    run = hanging(bench)
    first = json.loads(bench.run("experiment", "stacks", "-r", run, "-o", "json", timeout=120).out)[0]["pid"]
    os.kill(first, signal.SIGSTOP)
    try:
        found = json.loads(bench.run("experiment", "stacks", "-r", run, "-o", "json", timeout=120).out)
    finally:
        os.kill(first, signal.SIGCONT)
    assert (found[0]["state"], found[0]["stack"]) == ("stopped", None)
    assert found[0]["why"] == f"It is stopped; continue it: kill -CONT {first}."
    assert any(each["stack"] for each in found[1:])


@bare_and_contained
def test_a_run_that_has_ended_has_no_stacks(bench, target):
    bench.write("t.py", "print('done')\n")
    run = bench.start("t.py", timeout=300)
    bench.until_left(run)
    result = bench.run("experiment", "stacks", "-r", run, timeout=120)
    assert (result.code, result.out) == (246, "")
    assert f"The run `{run}` has ended" in result.err
    assert "holdfast " in result.err


def stacks(bench, run):
    """Of all its processes, complete: on a busy machine a process may answer late, or be cut off."""

    def asked():
        result = bench.run("experiment", "stacks", "-r", run, "-o", "json", timeout=120)
        assert result.code == 0, result.err
        found = json.loads(result.out)
        is_late = any(str(each["why"]).startswith(LATE) for each in found)
        is_cut = any(each["stack"] and not each["stack"].endswith("in <module>\n") for each in found)
        return None if is_late or is_cut else found

    return wait_for(asked, what="every process has answered in time")


def hanging(bench):
    bench.write("hang.py", HANGS)
    run = bench.start("hang.py", timeout=300)
    wait_for(lambda: b"waits" in (bench.far(run) / "driver_log").read_bytes(), 60)
    return run
