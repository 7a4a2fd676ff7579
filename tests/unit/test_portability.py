"""A client on Windows or macOS: its modules work without what Python does not have there. The tests run on Linux, in an
interpreter without those calls (`portability/other_system.py`)."""

from __future__ import annotations

import ast
import json
import ntpath
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import signal_name
from holdfast.project.file_names import unstorable
from holdfast.snapshots.patterns import with_slashes
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import take_snapshot
from unit.portability import other_system, scenes

TESTS = Path(__file__).resolve().parents[1]
SOURCE = Path(__file__).resolve().parents[2] / "src" / "holdfast"
SYSTEMS = ("win32", "darwin")

PLAY = "import sys; sys.path.insert(0, sys.argv[1]); from unit.portability.scenes import main; main(*sys.argv[2:])"


@dataclass(frozen=True)
class Scene:
    """The results of all scenes on one system."""

    system: str
    found: dict[str, Any]

    def __call__(self, name: str) -> Any:
        assert "broke" not in self.found[name], self.found[name]["broke"]
        return self.found[name]["found"]


@pytest.fixture(scope="module", params=SYSTEMS)
def play(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """`play("a_scene")` is what that scene found on the system in `play.system`; all are played once."""
    place = tmp_path_factory.mktemp(request.param)
    home = place / "home"
    home.mkdir()
    # No git, no HOME where that is not the variable's name, and a warning wherever a file's encoding is left open.
    variables = {"USERPROFILE" if request.param == "win32" else "HOME": str(home), "PATH": str(place), "NO_COLOR": "1"}
    options = ["-X", "warn_default_encoding"] if request.param == "win32" else []
    done = subprocess.run(
        [sys.executable, *options, "-c", PLAY, str(TESTS), request.param, str(place)],
        env={**variables, "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return Scene(request.param, json.loads(done.stdout))


def test_every_module_of_the_client_can_be_imported(play):
    imported = {*play("every_module_is_imported")}
    assert {"holdfast.cli.main", "holdfast.hosts.ssh", "holdfast.workbench.following.mirror"} <= imported
    assert "holdfast.farside.system.digests" in imported
    assert "holdfast.farside.run.supervisor" not in imported


KINDS = {"big.bin": "f", "sub/.gitignore": "f", "sub/run.sh": "x", "train.py": "f"}
COPIES = [["driver_log", "metrics/1-a.jsonl"], ["driver_log", "driver_log.diverged-1", "metrics"]]


@pytest.mark.parametrize(
    ("scene", "found"),
    [
        ("a_snapshot_is_taken_without_git", [KINDS, 1, True, "print(3)\n", []]),
        ("a_run_is_recorded_and_found", [True, False, True, True, "Submitted", 1]),
        ("gpu_samples_are_read", [["K80", 50, 4]]),
        ("copies_grow_and_are_set_aside", [COPIES[0], "one\ntwo\n", "new\n", COPIES[1]]),
        ("a_host_is_remembered", [7.0]),
        ("a_project_is_made_and_changed", ["iris", 32, "*\n"]),
        ("commands_that_reach_nobody", [0, 0, 240, 0]),
    ],
)
def test_a_client_does_there_what_it_does_here(play, scene, found):
    assert play(scene) == found


def test_submit_to_this_machine_says_in_one_sentence_that_it_needs_linux(play):
    code, out, err = play("submit_to_this_machine")

    system = {"win32": "Windows", "darwin": "macOS"}[play.system]
    assert (code, out) == (243, "")
    assert err == (
        f"error: Runs on this machine need Linux, and this is {system}: only Linux lets Holdfast find and end every "
        "process that a run has started.\n"
        "  Attach a Linux machine and submit there, or use Linux in a virtual machine or WSL.\n"
    )


def test_a_whole_run_on_a_linux_machine_comes_home(play):
    code, out, err, listed, outputs, python_path = play("a_whole_run_on_a_linux_machine")

    assert (code, out) == (0, "on the host\n"), err
    assert listed == [0, "Completed\n", ""]
    assert ";" not in python_path
    if play.system == "darwin":
        assert outputs == ["a:b", "aux.txt", "latest", "model.txt"]
    else:
        assert outputs == ["model.txt"]
        for name in ("`outputs/a:b`", "`outputs/aux.txt`", "`latest`, a link to `model.txt`"):
            assert f"note: {name}" in err


def test_no_module_of_the_client_names_what_windows_lacks():
    """Also where no scene comes by. A name may stand behind a question for the system, or for the name itself."""
    complaints = set()
    for name in scenes.client_modules():
        path = SOURCE.joinpath(*name.split(".")[1:])
        module = path.with_suffix(".py")  # a folder of that name may be left from an earlier checkout
        text = (module if module.is_file() else path / "__init__.py").read_text(encoding="utf-8")
        complaints |= {f"{name} {word}" for word in foreign_names(text)}

    assert complaints == REACHED_ONLY_WHERE_IT_IS
    assert foreign_names(BROKEN) == ["fcntl", "os.getuid"]


REACHED_ONLY_WHERE_IT_IS = {
    "holdfast.hosts.askpass socket.AF_UNIX",  # a place that is a number is a port
    "holdfast.project.own_home os.geteuid",  # behind a question for the name, which `require_own` asks first
    "holdfast.hosts.socket_folder os.geteuid",  # both behind the same question of `runtime_folder`
    "holdfast.hosts.socket_folder socket.AF_UNIX",
    "holdfast.hosts.shared_connection socket.AF_UNIX",  # asked for a path that `own_socket` or ssh's own settings gave
    "holdfast.snapshots.git_process os.sysconf",  # behind a file of /proc, which could be opened
}

BROKEN = """
import fcntl, os, sys, socket
from os import path
def f():
    if sys.platform != "win32":
        os.fork()
    return os.getuid()
def g():
    return socket.AF_UNIX if hasattr(socket, "AF_UNIX") else os.getpid()
def h():
    if sys.platform == "win32":
        return 0
    return os.getuid()
"""


LACKS, MODULES = other_system.LACKS["win32"], other_system.MODULES["win32"]
SUSPICIOUS = re.compile(
    "|".join(
        [
            *(rf"\b{module}\.({'|'.join(names)})\b|\bfrom {module} import" for module, names in LACKS.items()),
            rf"\bimport .*\b({'|'.join(MODULES)})\b",
        ]
    )
)


def foreign_names(text: str) -> list[str]:
    if not SUSPICIOUS.search(text):  # most modules need not be understood
        return []
    tree = ast.parse(text)
    found: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=attr) if attr in LACKS.get(module, ()):
                found.append((node, f"{module}.{attr}"))
            case ast.Import(names=names):
                found += [(node, each.name) for each in names if each.name in MODULES]
            case ast.ImportFrom(module=module, names=names):
                known = LACKS.get(module or "", ())
                found += [(node, f"{module}.{each.name}") for each in names if each.name in known]
    guarded = {id(node) for each in _guarded(tree) for node in ast.walk(each)} if found else set()
    return [word for node, word in found if id(node) not in guarded]


def _guarded(tree: ast.AST) -> list[ast.AST]:
    """What is only reached on systems that have it: behind a look at `sys.platform`, `os.name` or `hasattr`, also where
    that ends the function for the others; or where its absence is caught."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and "ImportError" in "".join(map(ast.unparse, node.handlers)):
            found += node.body
        elif isinstance(node, ast.If | ast.IfExp) and _asks(node.test):
            found += [node]
        elif isinstance(node, ast.FunctionDef):
            ends = [each for each in node.body if isinstance(each, ast.If) and _asks(each.test) and _leaves(each)]
            found += node.body[node.body.index(ends[0]) :] if ends else []
    return found


def _leaves(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], ast.Return | ast.Raise)


def _asks(test: ast.expr) -> bool:
    words = ast.unparse(test)
    return any(word in words for word in ("sys.platform", "os.name", "hasattr(os", "hasattr(socket"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("checkpoints/aux.pt", "`aux` is the name of a device on Windows"),
        ("COM1", "`COM1` is the name of a device on Windows"),
        ("a:b/model.pt", "Windows has no names with ':'"),
        ("what?.txt", "Windows has no names with '?'"),
        ("a\\b", "Windows has no names with '\\\\'"),
        ("bell\x07", "Windows has no names with '\\x07'"),
        ("ends.", "Windows has no names that end with a dot or a space"),
        ("ends /x", "Windows has no names that end with a dot or a space"),
        ("raw\udcff", "its name is not UTF-8"),
        *((name, "") for name in ("auxiliary.py", "console", ".hidden", "a..b", "ß", "LPT", "com10", "x/aux2")),
    ],
)
def test_a_name_that_a_disk_cannot_hold_is_refused_with_the_reason(path, reason):
    assert unstorable([path], "win32") == ({path: reason} if reason else {})
    assert unstorable([path], "darwin") == ({path: reason} if "\udcff" in path else {})
    assert unstorable([path], "linux") == {}


@pytest.mark.parametrize(
    ("system", "paths", "refused"),
    [
        ("win32", ["Model.pt", "model.pt"], {"model.pt": "`Model.pt` is the same name here"}),
        ("win32", ["A/x", "a/y"], {"a/y": "`A` is the same name here"}),
        ("darwin", ["caf\u00e9", "cafe\u0301"], {"cafe\u0301": "`caf\u00e9` is the same name here"}),
        ("linux", ["Model.pt", "model.pt"], {}),
    ],
)
def test_of_names_that_are_one_here_the_first_is_kept(system, paths, refused):
    assert unstorable(paths, system) == refused


def test_paths_of_windows_become_paths_of_a_manifest():
    joined = ntpath.join("C:\\project", "sub", "train.py")
    assert with_slashes(os.fsencode(joined), ntpath.sep) == b"C:/project/sub/train.py"
    assert with_slashes(b"a\\b", "/") == b"a\\b"


def test_on_windows_git_knows_which_files_are_executable(tmp_path, monkeypatch, needs):
    needs("git")
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    for name in ("tool", "plain", "new.sh"):
        (project / name).write_text("#!/bin/sh\n")
    git = ["git", "-C", str(project), "-c", "core.fileMode=false"]
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run([*git, "add", "tool", "plain"], check=True)
    subprocess.run([*git, "update-index", "--chmod=+x", "tool"], check=True)
    monkeypatch.setattr(sys, "platform", "win32")

    def kinds() -> dict[str, str]:
        store = ObjectStore(state / "objects")
        return {row[0]: row[1] for row in json.loads(store.read(take_snapshot(project, state).digest))["files"]}

    assert kinds() == {"tool": "x", "plain": "f", "new.sh": "x"}
    subprocess.run([*git, "update-index", "--chmod=-x", "tool"], check=True)
    assert kinds() == {"tool": "f", "plain": "f", "new.sh": "x"}


def test_signals_of_a_run_have_the_names_that_linux_gives_them():
    if not sys.platform.startswith("linux"):
        pytest.skip("compares with this system's own")
    own = {each.value: each.name for each in signal.Signals if each < signal.SIGRTMIN}
    assert {number: signal_name(number) for number in own} == own
    assert (signal_name(0), signal_name(64), signal_name(None)) == ("signal 0", "signal 64", "no signal")
