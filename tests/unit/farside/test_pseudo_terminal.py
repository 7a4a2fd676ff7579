"""A command with a terminal: what it sees there, what it reads, and that it ends as it would without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.farside.run import pseudo_terminal
from kit.waiting import wait_for

PROGRAM = [sys.executable, "-I", "-S", pseudo_terminal.__file__]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_all_three_streams_are_a_terminal_of_80_by_24():
    done = run("sh", "-c", "stty size; test -t 0 && test -t 1 && test -t 2 && test -r /dev/tty && echo all >&2")
    assert (done.stdout, done.stderr, done.returncode) == ("24 80\nall\n", "", 0)


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nprint(repr(sys.stdin.read() + sys.stdin.readline()))",
        "try: input('? ')\nexcept EOFError: print(repr(''))",
        "import readline\ntry: input('? ')\nexcept EOFError: print(repr(''))",
        "import os\nos.system('stty sane -onlcr'); print(repr(os.read(0, 1).decode()))",
    ],
    ids=["read", "input", "a program that waits for keys", "a program that makes it a usual terminal"],
)
def test_every_read_finds_the_end(script):
    done = run(sys.executable, "-c", script)
    assert (done.stdout.split()[-1], done.returncode) == ("''", 0)


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM), ("kill -KILL $$", -signal.SIGKILL), ("exec ./no-such", 127)],
)
def test_it_ends_as_the_command_does(command, code):
    assert run("sh", "-c", command).returncode == code


def test_a_program_that_is_not_there_has_no_terminal():
    done = run("/no/such/program")
    assert (done.returncode, done.stdout.count("/no/such/program")) == (127, 1)


def test_a_signal_reaches_the_command(tmp_path):
    ready = tmp_path / "ready"
    script = f"trap 'echo heard; exit 3' USR1; touch {ready}; while :; do sleep 0.02; done"
    process = subprocess.Popen([*PROGRAM, "sh", "-c", script], stdout=subprocess.PIPE)
    wait_for(ready.exists)
    process.send_signal(signal.SIGUSR1)
    assert (process.communicate()[0], process.returncode) == (b"heard\n", 3)


def test_all_that_is_written_arrives_unchanged():
    script = "import os\nfor at in range(4): os.write(1, b'%d' % at + b'x' * 300000 + b'\\r\\n')"
    data = subprocess.run([*PROGRAM, sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout
    assert data == b"".join(b"%d" % at + b"x" * 300000 + b"\r\n" for at in range(4))


def test_what_goes_on_in_the_background_keeps_nobody_waiting(tmp_path):
    left = tmp_path / "left"
    done = run("sh", "-c", f"(trap '' HUP; echo $$ > {left}; exec sleep 600 < /dev/null) & echo said; sleep 0.1")
    os.kill(_child(left), signal.SIGKILL)
    assert done.stdout == "said\n"


def _child(left: Path) -> int:
    """The pid of the `sleep` that the shell in the file has started."""
    session = left.read_text().strip()
    found = [
        int(each.name)
        for each in Path("/proc").glob("[0-9]*")
        if each.joinpath("stat").exists() and each.joinpath("stat").read_text().rpartition(")")[2].split()[3] == session
    ]
    assert len(found) == 1
    return found[0]
