"""Hostile process trees under every way a run can end, at random moments."""

from __future__ import annotations

import os
import signal

from runs.conftest import is_gone, wait_for

TARGETS = ("local",)  # what ends a run's processes is the same everywhere
TREE = """
import ctypes, os, random, signal, sys, time

chance = random.Random(int(sys.argv[2]))

def hide():
    for _ in range(chance.randrange(3)):
        if os.fork():
            os._exit(0)
        if chance.random() < 0.7:
            os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(3, 256)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        if chance.random() < 0.8:
            os.dup2(null, descriptor)
    os.chdir("/")
    open(sys.argv[1] + "/%d" % os.getpid(), "w").close()
    if chance.random() < 0.5:
        code = "import signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: time.sleep(60)"
        os.execve(sys.executable, ["kworker/0:1", "-c", code], {})
    while True:
        if chance.random() < 0.05 and os.fork():
            os._exit(0)  # a rotator: a new pid again and again
        time.sleep(0.02)

for number in range(8):
    chance.seed("%s-%d" % (sys.argv[2], number))
    if os.fork() == 0:
        hide()
while len(os.listdir(sys.argv[1])) < 8:
    time.sleep(0.01)
print("up", flush=True)
if sys.argv[3] == "stay":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)
"""


def _mine(marks: str) -> list[int]:
    """Living processes that carry the tree's marks: by their own words, or their children by the session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as source:
                    words = source.read()
            except OSError:
                continue
            if marks.encode() in words and b"hostile.py" in words and not is_gone(int(entry)):
                found.append(int(entry))
    return found


def test_nothing_of_a_hostile_tree_is_left_however_the_run_ends(bench, target, tmp_path, seed, chance):
    marks = tmp_path / "marks"
    marks.mkdir()
    bench.write("hostile.py", TREE)
    way = chance.choice(["cancel", "time-limit", "supervisor", "by itself"])
    options = ["--time-limit", "2s"] if way == "time-limit" else []
    stay = "go" if way == "by itself" else "stay"
    run_id = bench.start("-t", target, "--grace", "0.3s", *options, "hostile.py", str(marks), str(seed), stay)
    wait_for(lambda: b"up" in (bench.far(run_id) / "driver_log").read_bytes())
    if way == "cancel":
        assert bench.run("cancel", "-r", run_id).code == 0
    elif way == "supervisor":
        os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    bench.event(run_id, "ended")
    bench.run("logs", "-f", "-r", run_id)
    pids = [int(name) for name in os.listdir(marks)]
    assert [pid for pid in pids if not is_gone(pid)] == []
    assert _mine(str(marks)) == []
    ended = bench.record(run_id)["ended_processes"]
    assert ended, "the record says what was ended"
    assert not any(each["signal"] == "survived" for each in ended)
