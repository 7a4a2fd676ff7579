"""Hostile process trees under every way a run can end."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from integration.products.conftest import PRODUCTS
from integration.runs.conftest import is_gone
from kit.waiting import wait_for

TARGETS = PRODUCTS
TREE = """
import os, random, signal, sys, time

os.mkdir("marks")
marks = os.path.abspath("marks")
chance = random.Random(int(sys.argv[1]))

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
    open(marks + "/%d" % os.getpid(), "w").close()
    if chance.random() < 0.5:
        code = "import signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: time.sleep(60)"
        os.execve(sys.executable, ["kworker/0:1", "-c", code, sys.argv[3]], {})
    while True:
        if chance.random() < 0.05 and os.fork():
            os._exit(0)  # a rotator: a new pid again and again
        time.sleep(0.02)

for number in range(8):
    chance.seed("%s-%d" % (sys.argv[1], number))
    if os.fork() == 0:
        hide()
while len(os.listdir(marks)) < 8:
    time.sleep(0.01)
print("up", flush=True)
if sys.argv[2] == "stay":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)
"""


def _tree(token: str) -> list[int]:
    """Living processes that have the token among their arguments, in any container."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and token.encode() in Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0"):
                found.append(int(entry))
    return [pid for pid in found if not is_gone(pid)]


@pytest.mark.moments("cancel", "by itself", "supervisor", "time-limit")
def test_nothing_of_a_hostile_tree_is_left_however_the_run_ends(bench, target, tmp_path, moment):
    _end_hostile_tree(bench, tmp_path, moment)


@pytest.mark.moments("both owners", targets=("docker", "remotedocker"))
def test_in_a_container_nothing_is_left_even_when_both_owners_are_killed(bench, target, tmp_path, moment):
    """Beside a container, a process without both owners and without the run's mark cannot be found."""
    _end_hostile_tree(bench, tmp_path, moment)


def _end_hostile_tree(bench, tmp_path, moment):
    token = f"{tmp_path}-{os.getpid()}"
    bench.write("hostile.py", TREE)
    way = moment.stage
    options = ["--time-limit", "15s"] if way == "time-limit" else []
    stay = "go" if way == "by itself" else "stay"
    run_id = bench.start("--grace", "0.3s", *options, "hostile.py", str(moment.number), stay, token)
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    if way == "cancel":
        wait_for(lambda: len(_tree(token)) >= 8, what="none of them is just changing its pid or its program")
        assert bench.run("cancel", "-r", run_id).code == 0
    elif way == "supervisor":
        os.kill(bench.holder(run_id, 1), signal.SIGKILL)
    elif way == "both owners":
        for pid in [bench.holder(run_id, byte) for byte in (0, 1)]:
            os.kill(pid, signal.SIGKILL)
    followed = bench.run("logs", "-f", "-r", run_id)
    assert followed.out == "up\n", followed.err
    wait_for(lambda: _tree(token) == [])
    record = bench.record(run_id)
    expected = {"cancel": "canceled", "by itself": "completed", "time-limit": "time-limit"}
    assert record["reason"] == expected.get(way, "supervisor-died")
    ended = record["ended_processes"]
    assert ended, "the record says what was ended"
    assert not any(each["signal"] == "survived" for each in ended)
