"""What makes a Python print its stacks on request, on every Python of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.farside.operations import stacks
from holdfast.farside.system import processes
from integration.interpreters import FOUND
from kit.waiting import wait_for

SHIM = Path(stacks.__file__).parents[1] / "shim"
SCRIPT = """\
import multiprocessing, threading

def loads(ready):
    ready.release()
    threading.Event().wait()

def hangs():
    print("ready", flush=True)
    threading.Event().wait()

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        ready = context.Semaphore(0)
        context.Process(target=loads, args=(ready,), daemon=True).start()
        ready.acquire()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    hangs()
"""
WHOSE = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))"

every_python = pytest.mark.parametrize("python", FOUND.values(), ids=FOUND.keys())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "stacks").touch()
    (folder / "t.py").write_text(SCRIPT)
    return folder


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For processes that a busy machine delays before or during their answer."""
    for name, seconds in {"FIRST_WORD": 30.0, "QUIET": 0.3, "LAST_WORD": 60.0, "IN_ALL": 300.0}.items():
        monkeypatch.setattr(stacks, name, seconds)


def variables(run: Path, *path: Path) -> dict[str, str]:
    """No bytecode is written beside the tested sources."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOLDFAST_RUN_DIRECTORY": str(run),
    }


@pytest.fixture
def hanging(run: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    begun: list[subprocess.Popen[bytes]] = []
    yield begun
    for process in begun:
        left = [process.pid, *(each.pid for each in stacks.members(process.pid, None))]
        for pid in reversed(left):
            os.kill(pid, 9)
        process.communicate()


def begin(argv: Sequence[object], run: Path, hanging: list[subprocess.Popen[bytes]]) -> list[stacks.ProcessStack]:
    """The answers of all its processes once the script waits."""
    words = [str(word) for word in argv]
    process = subprocess.Popen([*words, run / "t.py"], env=variables(run, SHIM), stdout=subprocess.PIPE)
    hanging.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    wait_for(lambda: len(stacks.members(process.pid, None)) >= 5)
    found = [each for each in (processes.look(process.pid), *stacks.members(process.pid, None)) if each]
    with stacks._File(str(run / "stacks"), "digits_1") as file:
        wait_for(lambda: not any(stacks.hindrance(each, file.key) for each in found), what="all of them have begun")
        return list(stacks.ask(found, file))


@every_python
def test_it_and_all_that_it_starts_answer(python: Path, run: Path, hanging: list[subprocess.Popen[bytes]]) -> None:
    answers = begin([python, "-W", "error"], run, hanging)
    assert [answer.why for answer in answers] == [""] * len(answers)
    assert "in hangs\n" in str(answers[0].stack)
    assert str(answers[0].stack).count("most recent call first") == 2
    assert sum("in loads\n" in str(answer.stack) for answer in answers) == 3


def test_that_of_a_virtual_environment_answers(
    tmp_path: Path, run: Path, hanging: list[subprocess.Popen[bytes]]
) -> None:
    newest = list(FOUND.values())[-1]
    subprocess.run([newest, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    answers = begin([tmp_path / "venv/bin/python"], run, hanging)
    assert "in hangs\n" in str(answers[0].stack)


@every_python
@pytest.mark.parametrize("text", ["", "raise KeyError('broken')", "import not_there", "import sys; sys.path += ['x']"])
def test_the_users_own_is_imported_as_if_there_were_no_other(python: Path, run: Path, text: str) -> None:
    own = run / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text + "\n")
    results = [
        subprocess.run([python, "-W", "error", "-c", WHOSE], env=variables(run, *path), capture_output=True, text=True)
        for path in ((SHIM, own), (own,))
    ]
    ours, alone = ((each.returncode, each.stdout, each.stderr) for each in results)
    assert ours == alone


@every_python
def test_without_a_stacks_file_the_script_prints_only_its_own_output(python: Path, run: Path) -> None:
    (run / "stacks").unlink()
    argv = [str(python), "-W", "error", "-c", "print(1)"]
    done = subprocess.run(argv, env=variables(run, SHIM), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
