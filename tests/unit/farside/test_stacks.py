"""Asking the processes of a run for their stacks: which are asked, which are not, and why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.farside.operations import stacks
from holdfast.farside.system import processes
from holdfast.farside.system.processes import Process, descendants, look
from holdfast.farside.system.refusal import Refused
from kit.waiting import wait_for

SHIM = Path(stacks.__file__).parents[1] / "shim"
PYTHON: str = getattr(sys, "_base_executable", sys.executable)
EVERY = "for number in set(range(1, 65)) - {9, 19, 32, 33}:\n    signal.signal(number, lambda *_: os._exit(3))"
WAITS = "def waits():\n    print('ready', flush=True)\n    time.sleep(600)\nwaits()\n"

Started = Callable[..., int]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "stacks"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine delays a process before its first line, and between two lines of a stack."""
    monkeypatch.setattr(stacks, "FIRST_WORD", 60.0)
    monkeypatch.setattr(stacks, "QUIET", 0.1)
    monkeypatch.setattr(stacks, "LAST_WORD", 60.0)


@pytest.fixture
def start(file: Path) -> Iterator[Started]:
    """A Python of the run with these lines, or another program; returns its pid when it is ready."""
    begun: list[subprocess.Popen[str]] = []

    def begin(code: str = "", *options: str, program: tuple[str, ...] = ()) -> int:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SHIM), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["HOLDFAST_RUN_DIRECTORY"] = str(file.parent)
        argv = program or (PYTHON, *options, "-c", f"import os, signal, time\n{code}\n{WAITS}")
        begun.append(subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True))
        if not program:
            assert begun[-1].stdout is not None
            assert begun[-1].stdout.readline() == "ready\n"
        return begun[-1].pid

    yield begin
    for process in begun:
        process.kill()
        process.send_signal(signal.SIGCONT)
        process.communicate()


def asked(file: Path, *pids: int) -> list[stacks.ProcessStack]:
    return ask(file, *map(seen, pids))


def ask(file: Path, *found: Process) -> list[stacks.ProcessStack]:
    with stacks._File(str(file), "digits_1") as opened:
        return list(stacks.ask(list(found), opened))


def seen(pid: int) -> Process:
    process = look(pid)
    assert process is not None
    return process


def lives(pid: int) -> bool:
    process = look(pid)
    return process is not None and process.state not in "ZX"


def test_each_answers_for_itself(start, file):
    pids = [start("def one(): pass"), start("def two(): pass")]
    answers = asked(file, *pids)
    assert [answer.process.pid for answer in answers] == pids
    for answer in answers:
        assert answer.stack is not None
        assert answer.stack.count("most recent call first") == 1
        assert "in waits\n" in answer.stack
        assert answer.why == ""
        assert "import os, signal, time" in answer.command
    assert all(map(lives, pids))


def test_a_process_that_does_not_handle_the_signal_is_not_sent_it(start, file):
    why = {
        start(program=("sleep", "600")): "It is not Python.",
        start("", "-I"): stacks._DEAF,
        start(f"signal.signal({stacks.NUMBER}, signal.SIG_DFL)"): stacks._DEAF,
        start(EVERY): "It handles every signal itself, so it is not sent one.",
        # another file with its descriptor's number would get the stack
        start("os.closerange(3, 5000)"): "It has closed the file that it would answer in.",
    }
    answers = asked(file, *why)
    assert {answer.process.pid: answer.why for answer in answers} == why
    assert [answer.stack for answer in answers] == [None] * 5
    assert all(map(lives, why))


def test_one_that_is_stopped_or_ended_meanwhile_is_said_to_be_so_and_not_waited_for(start, file):
    pid = start()
    before = seen(pid)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: seen(pid).state == "T")
    (answer,) = asked(file, pid)
    assert (answer.stack, answer.why) == (None, f"It is stopped; continue it: kill -CONT {pid}.")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: seen(pid).state == "Z")
    assert [answer.why for answer in ask(file, before)] == ["It has ended."]


def test_one_that_blocks_the_signal_is_waited_for_no_longer_than_a_second(start, file, monkeypatch):
    monkeypatch.setattr(stacks, "FIRST_WORD", 0.05)
    blocking = start(f"signal.pthread_sigmask(signal.SIG_BLOCK, [{stacks.NUMBER}])")
    answer = asked(file, blocking)[0]
    assert (answer.stack, answer.why) == (None, "It blocks the signal by which it is asked.")


def test_one_that_waits_in_the_kernel_is_looked_at_again_and_then_said_to_wait(start, file, monkeypatch):
    found = seen(start())
    states = ["D"]
    monkeypatch.setattr(processes, "look", lambda pid: found._replace(state=states.pop(0) if states else "S"))
    assert ask(file, found)[0].stack is not None
    states += ["D"] * 1000
    assert ask(file, found)[0].why.startswith("It waits in the kernel")


def test_a_process_that_has_just_begun_is_let_become_what_it_is_to_be(start, file, monkeypatch):
    """Between fork and exec it has the handlers of its parent."""
    pid = start()
    looks = iter(["", "what it is then"])
    monkeypatch.setattr(stacks, "_age", lambda process: 0.0)
    monkeypatch.setattr(stacks, "hindrance", lambda process, key: next(looks))
    assert asked(file, pid)[0].why == "what it is then"


def test_what_may_not_be_signalled_is_said(start, file, monkeypatch):
    pid = start()

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", refuse)
        answer = asked(file, pid)[0]
    assert answer.why == "It belongs to another account: it may not be sent a signal."


def test_where_the_file_was_removed_nothing_is_asked_and_what_is_no_file_is_not_waited_for(start, file):
    file.unlink()
    assert asked(file, start())[0].why == stacks._DEAF
    os.mkfifo(file)
    with pytest.raises(Refused, match="is not a file"):
        stacks._File(str(file), "digits_1").__enter__()


def test_who_asks_second_waits_and_is_told_in_the_end(file, monkeypatch):
    monkeypatch.setattr(stacks, "PATIENCE", 0.05)
    with stacks._File(str(file), "digits_1"), pytest.raises(Refused, match="Another command asks"):
        stacks._File(str(file), "digits_1").__enter__()
    with stacks._File(str(file), "digits_1") as opened:
        assert opened.key is not None


def test_a_file_that_has_grown_large_begins_anew(start, file, monkeypatch):
    monkeypatch.setattr(stacks, "LARGEST_FILE", 10)
    file.write_text("x" * 11)
    assert "in waits" in str(asked(file, start())[0].stack)
    assert file.read_text().startswith("Current thread")


def test_the_tree_is_told_parents_first_without_holdfasts_own(start):
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b'hf-sampler', 0, 0, 0)"
    inner = "import subprocess, sys\nprint('ready', flush=True)\nsubprocess.Popen(['sleep', '600']).wait()"
    root = start(
        "import subprocess, sys\n"
        f"children = [subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE) for code in "
        f"({inner!r}, {name + chr(10) + inner!r}, {inner!r})]\n"
        "[child.stdout.readline() for child in children]"
    )
    try:
        kinds = ["python", "sleep", "python", "sleep"]
        wait_for(lambda: len(descendants(root, set)) == 6, what="each of the three has its child")
        wait_for(lambda: [each.name.rstrip(".0123456789") for each in stacks.members(root, None)] == kinds)
    finally:
        for process in descendants(root, set):
            os.kill(process.pid, signal.SIGKILL)


def test_a_run_that_is_not_here_or_has_ended_is_refused(home):
    asked_for = {"project": "p", "run": "digits_1"}
    with pytest.raises(Refused) as refusal:
        stacks.stacks(home, asked_for)
    assert refusal.value.kind == "not-found"
    folder = Path(home.run("p", "digits_1"))
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text('{"t":1,"e":"ended","reason":"completed","code":0}\n')
    with pytest.raises(Refused) as refusal:
        stacks.stacks(home, asked_for)
    assert refusal.value.kind == "ended"


def test_a_stack_that_is_interrupted_while_it_is_written_is_waited_for(file, monkeypatch):
    monkeypatch.setattr(stacks, "QUIET", 0.01)
    monkeypatch.setattr(stacks, "PAUSE", 60.0)
    lines = [
        "Current thread 0x1 (most recent call first):\n",
        '  File "a", line 1 in f\n',
        '  File "a", line 2 in <module>\n',
    ]
    us = seen(os.getpid())

    def write() -> None:
        for line in lines:
            with file.open("a") as target:
                target.write(line)
            time.sleep(0.03)

    writer = threading.Thread(target=write)
    with stacks._File(str(file), "r") as asked:
        begin = asked.size()
        writer.start()
        assert asked.answer(us, begin) == ("".join(lines), "")
    writer.join()
