"""Copies of a command: what each gets, what is shown of them, and how they end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from holdfast.farside.run import processes_per_node
from kit.waiting import wait_for

PROGRAM = processes_per_node.__file__
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


def words(count: int, how: str, script: str) -> list[str]:
    return [sys.executable, "-I", "-S", PROGRAM, str(count), how, sys.executable, "-c", script]


def run(count: int, how: str, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words(count, how, script), capture_output=True, text=True, check=False)


def test_each_copy_gets_its_rank_and_one_port(tmp_path):
    script = f"""
import os
said = " ".join(os.environ[each] for each in {(*NAMES, "MASTER_PORT")!r})
open({str(tmp_path)!r} + "/" + os.environ["RANK"], "w").write(said)
"""
    assert run(3, "first", script).returncode == 0
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [each[:-1] for each in found] == [[str(rank), str(rank), "3", "3", "127.0.0.1"] for rank in range(3)]
    assert len({each[-1] for each in found}) == 1 and int(found[0][-1]) > 0


def test_only_what_rank_0_prints_is_shown():
    done = run(3, "first", "import os, sys; print('I am', os.environ['RANK']); print('error', file=sys.stderr)")
    assert (done.stdout, done.stderr, done.returncode) == ("I am 0\n", "error\n", 0)


def test_lines_of_all_have_their_rank():
    done = run(3, "tag", "import os; print('I am', os.environ['RANK']); print('no newline', end='')")
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[rank {rank}] {said}" for rank in range(3) for said in (f"I am {rank}", "no newline")
    )


@pytest.mark.parametrize(("how_it_fails", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 6)", 128 + 6)])
def test_the_first_that_fails_ends_the_others_and_says_why(how_it_fails, code):
    script = f"""
import os, sys, time
if os.environ["RANK"] == "2":
    print("rank two is out of luck", flush=True)
    {how_it_fails}
time.sleep(600)
"""
    done = run(3, "first", script)
    assert done.returncode == code
    assert done.stdout == "[rank 2] rank two is out of luck\n"


def test_a_signal_reaches_all_copies(tmp_path):
    script = f"""
import os, signal, sys, time
place = {str(tmp_path)!r} + "/" + os.environ["RANK"]
def end(*_):
    open(place + ".ended", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
open(place, "w").close()
time.sleep(600)
"""
    process = subprocess.Popen(words(2, "first", script))
    wait_for(lambda: all((tmp_path / str(rank)).exists() for rank in range(2)))
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert sorted(os.listdir(tmp_path)) == ["0", "0.ended", "1", "1.ended"]


def test_much_output_of_a_silent_rank_keeps_nobody_waiting():
    done = run(2, "first", "import os; print('x' * (1 << 22) if os.environ['RANK'] == '1' else 'short')")
    assert (done.stdout, done.returncode) == ("short\n", 0)


def test_a_program_that_is_not_there_is_named_once():
    line = [sys.executable, PROGRAM, "2", "first", "/no/such/program"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.count("/no/such/program") == 1
