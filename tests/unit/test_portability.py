"""A client on Windows or macOS: its modules work without what Python does not have there. The tests run on Linux, in an
interpreter from which those calls are taken away (`portability/other_system.py`)."""

from __future__ import annotations

import ast
import json
import ntpath
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).with_name("portability")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "holdfast"
SYSTEMS = ("win32", "darwin")

Scene = Callable[[str], Any]


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
        [sys.executable, *options, str(HERE / "scenes.py"), request.param, str(place)],
        env={**variables, "COLUMNS": "100", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    def scene(name: str) -> Any:
        assert "broke" not in found[name], found[name]["broke"]
        return found[name]["found"]

    scene.system = request.param  # type: ignore[attr-defined]
    return scene


def test_every_module_of_the_client_can_be_imported(play: Scene) -> None:
    imported = play("every_module_is_imported")

    assert {
        "holdfast.cli.main",
        "holdfast.hosts.ssh",
        "holdfast.workbench.following.mirror",
        "holdfast.farside.prefix",
    } <= {*imported}
    assert "holdfast.farside.run.supervisor" not in imported


def test_a_snapshot_is_taken_and_restored_byte_for_byte(play: Scene) -> None:
    kinds, new, same, restored, left_behind = play("a_snapshot_is_taken_without_git")

    assert kinds == {"big.bin": "f", "sub/.gitignore": "f", "sub/run.sh": "x", "train.py": "f"}
    assert (new, same, restored, left_behind) == (1, True, "print(3)\n", [])


def test_a_run_is_recorded_while_its_lock_is_held_by_one(play: Scene) -> None:
    assert play("a_run_is_recorded_and_found") == [True, False, True, True, "Submitted", 1]


def test_copies_of_a_run_grow_and_are_set_aside(play: Scene) -> None:
    have, shown, again, files = play("copies_grow_and_are_set_aside")

    assert have == ["driver_log", "metrics/1-a.jsonl"]
    assert (shown, again) == ("one\ntwo\n", "new\n")
    assert files == ["driver_log", "driver_log.diverged-1", "metrics"]


def test_what_is_known_of_a_host_is_kept(play: Scene) -> None:
    assert play("a_host_is_remembered") == [7.0]


def test_a_project_is_made_and_its_files_changed(play: Scene) -> None:
    assert play("a_project_is_made_and_changed") == ["iris", 32, "*\n"]


def test_commands_that_reach_no_machine_work(play: Scene) -> None:
    assert play("commands_that_reach_nobody") == [0, 0, 240, 0]


def test_submit_to_this_machine_says_in_one_sentence_that_it_needs_linux(play: Scene) -> None:
    code, out, err = play("submit_to_this_machine")

    system = {"win32": "Windows", "darwin": "macOS"}[play.system]  # type: ignore[attr-defined]
    assert (code, out) == (243, "")
    assert err == (
        f"error: Runs on this machine need Linux, and this is {system}: only Linux lets Holdfast find and end every "
        "process that a run has started.\n"
        "  Attach a Linux machine and submit there, or use Linux in a virtual machine or WSL.\n"
    )


def test_a_whole_run_on_a_linux_machine_comes_home(play: Scene) -> None:
    code, out, err, listed, outputs, python_path = play("a_whole_run_on_a_linux_machine")

    assert (code, out) == (0, "over there\n"), err
    assert listed == [0, "Completed\n", ""]
    assert ";" not in python_path
    if play.system == "darwin":  # type: ignore[attr-defined]
        assert outputs == ["a:b", "aux.txt", "latest", "model.txt"]
    else:
        assert outputs == ["model.txt"]
        assert "note: `outputs/a:b` stays on its machine: Windows has no names with ':'." in err
        assert "note: `outputs/aux.txt` stays on its machine: `aux` is the name of a device on Windows." in err
        assert "note: `latest`, a link to `model.txt`, cannot be made here" in err


def test_no_module_of_the_client_names_what_windows_lacks() -> None:
    """Also where no scene comes by. A name may stand behind a question for the system, or for the name itself."""
    sys.path.insert(0, str(HERE))
    try:
        import other_system
        import scenes
    finally:
        sys.path.remove(str(HERE))
    complaints = set()
    for name in scenes.client_modules():
        path = SOURCE.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = path.read_text(encoding="utf-8")
        complaints |= {f"{name} {word}" for _, word in foreign_names(text, other_system)}

    assert complaints == REACHED_ONLY_WHERE_IT_IS
    assert [word for _, word in foreign_names(BROKEN, other_system)] == ["fcntl", "os.getuid"]


REACHED_ONLY_WHERE_IT_IS = {
    "holdfast.hosts.askpass socket.AF_UNIX",  # a place that is a number is a port
    "holdfast.hosts.multiplexing socket.AF_UNIX",  # asked for a path that `own_socket` or ssh's own settings gave
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


def foreign_names(text: str, other_system: Any) -> list[tuple[int, str]]:
    lacks, modules = other_system.LACKS["win32"], other_system.MODULES["win32"]
    tree = ast.parse(text)
    found: list[tuple[ast.AST, int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=attr) if attr in lacks.get(module, ()):
                found.append((node, node.lineno, f"{module}.{attr}"))
            case ast.Import(names=names):
                found += [(node, node.lineno, each.name) for each in names if each.name in modules]
            case ast.ImportFrom(module=module, names=names):
                known = lacks.get(module or "", ())
                found += [(node, node.lineno, f"{module}.{each.name}") for each in names if each.name in known]
    guarded = {id(node) for each in _guarded(tree) for node in ast.walk(each)} if found else set()
    return [(line, word) for node, line, word in found if id(node) not in guarded]


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
    ],
)
def test_a_name_that_windows_cannot_hold_is_refused_with_the_reason(path: str, reason: str) -> None:
    from holdfast.project.file_names import unstorable

    assert unstorable([path], "win32") == {path: reason}
    assert unstorable([path], "linux") == {}


def test_names_that_only_look_odd_are_kept() -> None:
    from holdfast.project.file_names import unstorable

    assert unstorable(["auxiliary.py", "console", ".hidden", "a..b", "ß", "LPT", "com10", "x/aux2"], "win32") == {}


@pytest.mark.parametrize(
    ("system", "paths", "refused"),
    [
        ("win32", ["Model.pt", "model.pt"], {"model.pt": "`Model.pt` is the same name here"}),
        ("win32", ["A/x", "a/y"], {"a/y": "`A` is the same name here"}),
        ("darwin", ["caf\u00e9", "cafe\u0301"], {"cafe\u0301": "`caf\u00e9` is the same name here"}),
        ("darwin", ["raw\udcff"], {"raw\udcff": "its name is not UTF-8"}),
        ("linux", ["Model.pt", "model.pt"], {}),
    ],
)
def test_of_names_that_are_one_here_the_first_is_kept(system: str, paths: list[str], refused: dict[str, str]) -> None:
    from holdfast.project.file_names import unstorable

    assert unstorable(paths, system) == refused


def test_paths_of_windows_become_paths_of_a_manifest() -> None:
    from holdfast.snapshots.patterns import with_slashes

    joined = ntpath.join("C:\\project", "sub", "train.py")

    assert with_slashes(os.fsencode(joined), ntpath.sep) == b"C:/project/sub/train.py"
    assert with_slashes(b"a\\b", "/") == b"a\\b"


def test_on_windows_git_knows_which_files_are_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[..., None]
) -> None:
    from holdfast.snapshots.store import ObjectStore
    from holdfast.snapshots.take import take_snapshot

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


def test_signals_of_a_run_have_the_names_that_linux_gives_them() -> None:
    import signal

    from holdfast.model import signal_name

    if not sys.platform.startswith("linux"):
        pytest.skip("compares with this system's own")
    own = {each.value: each.name for each in signal.Signals if each < signal.SIGRTMIN}
    assert {number: signal_name(number) for number in own} == own
    assert (signal_name(0), signal_name(64), signal_name(None)) == ("signal 0", "signal 64", "no signal")
