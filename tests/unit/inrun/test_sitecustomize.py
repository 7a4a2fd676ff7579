"""What every Python of a run does at start: it listens for the signal, and otherwise behaves as usual."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.farside.operations import stacks
from holdfast.farside.system.layout import STACKS
from kit.waiting import wait_for

SHIM = Path(stacks.__file__).parents[1] / "shim"
NUMBER = stacks.NUMBER
PYTHON: str = getattr(sys, "_base_executable", sys.executable)
READY = "import sys, time; print('ready', flush=True); time.sleep(600)"

Python = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's."""
    found = tmp_path / "run"
    found.mkdir()
    (found / "stacks").touch()
    return found


@pytest.fixture
def python(folder: Path) -> Iterator[Python]:
    started: list[subprocess.Popen[str]] = []

    def start(
        code: str, path: Sequence[Path] = (SHIM,), options: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[str]:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, path))}
        ours = {"PYTHONDONTWRITEBYTECODE": "1", "HOLDFAST_RUN_DIRECTORY": str(folder)}
        argv = [PYTHON, *options, "-c", textwrap.dedent(code)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(argv, env={**environment, **ours, **more}, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def said(python: Python) -> Callable[..., tuple[int, str, str]]:
    def finish(*arguments: object, **options: object) -> tuple[int, str, str]:
        process = python(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return finish


def ready(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def test_the_signal_and_the_file_are_those_that_the_agent_uses():
    text = (SHIM / "sitecustomize.py").read_text()

    assert f"\n_BELOW_MAXIMUM = {stacks.BELOW_MAXIMUM}\n" in text
    assert f'\n_FILE = "{STACKS}"\n' in text
    assert stacks.NUMBER == signal.SIGRTMAX - stacks.BELOW_MAXIMUM


def test_a_python_2_that_a_script_starts_can_read_it_and_says_nothing():
    """By its syntax, as there need not be one here: no annotations, no f-strings, no names after a star."""
    nodes = list(ast.walk(ast.parse((SHIM / "sitecustomize.py").read_text(encoding="ascii"))))
    assert not [node for node in nodes if isinstance(node, (ast.AnnAssign, ast.JoinedStr, ast.Nonlocal, ast.Starred))]
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            given = [*node.args.args, *node.args.kwonlyargs]
            assert node.returns is None and not node.args.kwonlyargs, node.name
            assert not any(each.annotation for each in given), node.name


def test_a_python_that_is_asked_writes_where_all_its_threads_are(python, folder):
    process = ready(
        python(
            """
            import threading, time
            def waits_in_a_thread():
                time.sleep(600)
            threading.Thread(target=waits_in_a_thread, daemon=True).start()
            def waits_in_main():
                print("ready", flush=True)
                time.sleep(600)
            waits_in_main()
            """
        )
    )
    for _ in range(2):
        (folder / "stacks").write_bytes(b"")
        process.send_signal(NUMBER)
        wait_for(lambda: has(folder, "in <module>") and has(folder, "in waits_in_a_thread"))
        assert has(folder, "in waits_in_main")
    assert process.poll() is None


def has(folder: Path, text: str) -> bool:
    return text in (folder / "stacks").read_text()


def test_it_writes_nothing_and_imports_next_to_nothing(said):
    names = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    with_it, without = said(names), said(names, path=[])
    more = set(json.loads(with_it[1])) - set(json.loads(without[1]))
    assert more <= {"sitecustomize", "_signal", "faulthandler", "fcntl"}
    assert with_it[::2] == without[::2] == (0, "")


def test_the_descriptor_is_high_and_no_child_inherits_it(said):
    code, out, err = said(
        """
        import os, subprocess, sys
        leads = {n: os.path.realpath("/proc/self/fd/" + n) for n in os.listdir("/proc/self/fd")}
        ours = [n for n in leads if leads[n].endswith("/stacks")]
        assert len(ours) == 1, ours
        print(ours[0])
        print(subprocess.run(["ls", "/proc/self/fd"], close_fds=False, stdout=subprocess.PIPE).stdout.decode().split())
        """
    )
    assert (code, err) == (0, "")
    high, inherited = out.splitlines()
    assert int(high) >= 200
    assert high not in inherited


def test_few_descriptors_are_enough(python, folder):
    script = f"""
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        os.execv(sys.executable, [sys.executable, "-c", {READY!r}])
        """
    ready(python(script)).send_signal(NUMBER)
    wait_for(lambda: has(folder, "in <module>"))


def test_where_it_cannot_listen_nothing_happens(said, folder):
    mask = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('SigCgt')][0])"
    without = said(mask, path=[])
    assert without[0] == 0 and without[2] == ""
    assert said(mask) != without
    for place in (str(folder / "gone"), ""):
        assert said(mask, HOLDFAST_RUN_DIRECTORY=place) == without
    (folder / "stacks").unlink()
    assert said(mask) == without
    (folder / "stacks").symlink_to("elsewhere")
    assert said(mask) == without


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_is_told_to_ignore_the_environment_is_left_alone(said, option):
    code, out, err = said("import sys; print('faulthandler' in sys.modules)", options=[option])
    assert (code, out, err) == (0, "False\n", "")


def test_a_late_signal_does_not_end_a_python_that_is_about_to_end(said):
    """The last step happens after Python has removed its own handlers."""
    script = f"""
        import faulthandler, os
        assert faulthandler.unregister({NUMBER})
        os.kill(os.getpid(), {NUMBER})
        print("lives")
        """
    assert said(script) == (0, "lives\n", "")


def test_a_script_may_use_faulthandler_and_the_signal_itself(said, folder, tmp_path):
    script = f"""
        import faulthandler, os, signal
        faulthandler.enable()
        own = open({str(tmp_path / "own")!r}, "w")
        faulthandler.register(signal.SIGUSR1, file=own)
        os.kill(os.getpid(), signal.SIGUSR1)
        signal.signal({NUMBER}, lambda number, frame: print("mine", number))
        os.kill(os.getpid(), {NUMBER})
        faulthandler.disable()
        """
    assert said(script) == (0, f"mine {NUMBER}\n", "")
    assert "in <module>" in (tmp_path / "own").read_text()
    assert (folder / "stacks").read_text() == ""


def test_the_users_own_sitecustomize_is_imported_in_its_place(said, tmp_path):
    own = write(tmp_path / "own/sitecustomize.py", "import sys; sys.path.append('added'); OWN = list(sys.path)\n")
    script = """
        import sys, sitecustomize
        print(sitecustomize.__file__, sitecustomize.OWN[-1], sys.path[-1], 'faulthandler' in sys.modules)
        print(sitecustomize.__spec__.origin, [type(each).__name__ for each in sys.meta_path if type(each) is not type])
        """
    code, out, err = said(script, path=[SHIM, own.parent])
    alone = said(script, path=[own.parent])
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{own} added added True"
    assert out.splitlines()[1] == alone[1].splitlines()[1]


@pytest.mark.parametrize(
    "text",
    [
        "raise KeyError('broken')",
        "import a_module_that_is_not_there",
        "raise ImportError('not today', name='sitecustomize')",
        "syntax error",
        "print('said by it')",
    ],
)
def test_what_goes_wrong_in_the_users_own_is_told_as_python_tells_it(said, tmp_path, text):
    own = write(tmp_path / "own/sitecustomize.py", text).parent
    script = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))"
    assert said(script, path=[SHIM, own]) == said(script, path=[own])


def test_an_exit_in_the_users_own_ends_python_as_ever(said, tmp_path):
    own = write(tmp_path / "own/sitecustomize.py", "raise SystemExit(7)").parent
    (code, out, err), alone = said("pass", path=[SHIM, own]), said("pass", path=[own])
    assert (code, out, err.splitlines()[-1]) == (alone[0], alone[1], alone[2].splitlines()[-1])


def test_the_shim_of_another_version_is_not_taken_for_the_users_own(said, tmp_path):
    other = write(tmp_path / "far/holdfast/farside/shim/sitecustomize.py", "print('the other')").parent
    own = write(tmp_path / "own/sitecustomize.py", "print('own')").parent
    assert said("pass", path=[SHIM, other, own]) == (0, "own\n", "")
    assert said("pass", path=[SHIM, other]) == (0, "", "")


def test_one_that_a_finder_of_its_own_finds_is_found(said, tmp_path):
    """Editable installs put one into the way of imports before `sitecustomize` is looked for."""
    own = write(tmp_path / "hidden/sitecustomize.py", "print('found')")
    write(
        tmp_path / "path/usercustomize.py",
        f"""
        import importlib, os, sys
        from importlib.util import spec_from_file_location
        there = [each for each in sys.path if os.path.exists(os.path.join(each, "sitecustomize.py"))]
        sys.path[:] = [each for each in sys.path if each not in there[1:]]  # Debian's Python has one of its own
        class Finder:
            def find_spec(self, name, path=None, target=None):
                return spec_from_file_location(name, {str(own)!r}) if name == "sitecustomize" else None
        sys.meta_path.append(Finder())
        sys.modules.pop("sitecustomize", None)
        import sitecustomize
        """,
    )
    script = "import usercustomize"
    assert "found" in said(script, path=[SHIM, tmp_path / "path"])[1]
