"""`main(SYSTEM, FOLDER)`, in a separate process: becomes that system and plays each scene in its own folder. Prints one
JSON object: what each scene found, or how it broke."""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unit.portability import other_system

SOURCE = Path(__file__).resolve().parents[3] / "src" / "holdfast"
RUNS_OVER_THERE = ("farside.", "project.templates.")
USED_BY_BOTH = ("farside", "farside.system", "farside.system.frames", "farside.system.digests")


def client_modules() -> list[str]:
    """Every module except those that only run on a host."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        is_over_there = name not in USED_BY_BOTH and f"{name}.".startswith(RUNS_OVER_THERE)
        if name not in ("", "__main__") and (not is_over_there or name == "project.templates"):
            found.append(f"holdfast.{name}")
    return found


def every_module_is_imported(_: Path) -> Any:
    import importlib

    return [importlib.import_module(name).__name__ for name in client_modules()]


def a_snapshot_is_taken_without_git(folder: Path) -> Any:
    from holdfast.snapshots.restore import restore_snapshot
    from holdfast.snapshots.store import CHUNK, ObjectStore
    from holdfast.snapshots.take import take_snapshot

    project, state = folder / "project", folder / "state"
    files = {
        "train.py": b"print(1)\nprint(2)\n",
        "sub/run.sh": b"#!/bin/sh\n",
        "big.bin": b"a\nb\x1a" * (CHUNK // 2),
        "sub/.gitignore": b"*.tmp\n",
        "sub/a.tmp": b"",
    }
    for name, content in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(content)
    (project / "sub/run.sh").chmod(0o755)
    first = take_snapshot(project, state)
    (project / "train.py").write_bytes(b"print(3)\n")
    second = take_snapshot(project, state)
    back, store = folder / "back", ObjectStore(state / "objects")
    emptied = store.put_bytes(b"lost by a crash")
    store.path_of(emptied).chmod(0o600)  # contents are read-only
    store.path_of(emptied).write_bytes(b"")
    store.put_bytes(b"lost by a crash")
    restore_snapshot(store, first.digest, back)
    restore_snapshot(store, second.digest, back, overwrite=True)
    same = all((back / name).read_bytes() == files[name] for name in ("sub/run.sh", "big.bin"))
    kinds = {row[0]: row[1] for row in json.loads(store.read(first.digest))["files"]}
    left = [name for name in os.listdir(state / "objects") if name.startswith(".")]
    same = same and store.read(emptied) == b"lost by a crash" and (state / "snapshot-cache.json").exists()
    return [kinds, second.new_objects, same, (back / "train.py").read_bytes().decode(), left]


def a_run_is_recorded_and_found(folder: Path) -> Any:
    from holdfast.history.index import Index
    from holdfast.history.records import read_run
    from holdfast.history.run_folder import RunFolders
    from holdfast.model import Submission
    from holdfast.workbench.following.mirror import writer_lock

    state = folder / ".holdfast"
    folders = RunFolders(state)
    run_id = folders.reserve("iris", 1_500_000_000.0)
    with writer_lock(folders.draft(run_id)) as mine:
        number = Index(state).next_run_number("train.py", run_id)
        submission = Submission(
            run_id=run_id, run_number=number, project_id="0" * 32, project_name="iris", script_name="train.py",
            arguments=(), run_configuration="gpu1", target="gpu1", target_type="remote", snapshot="0" * 64,
            created=1_500_000_000.0, generation="g", parent_run_id=None, tracked=True, properties={},
        )  # fmt: skip
        folders.commit(run_id, submission, {}, {})
        with writer_lock(folders.path(run_id)) as second:
            pass
    with writer_lock(folders.path(run_id)) as third:
        pass
    found = list(Index(state).unfinished())
    return [mine, second, third, folders.all_ids() == (run_id,), read_run(folders, run_id).status.value, len(found)]


def gpu_samples_are_read(folder: Path) -> Any:
    from holdfast.history.gpu_series import FILE, read_series

    (folder / FILE).write_bytes(
        b'{"format": 1, "began": 0, "source": "nvml"}\n'
        b'{"devices": [{"number": 0, "uuid": "GPU-1", "name": "K80", "total": 9, "mig": false}]}\n'
        b'{"t": 0.0, "d": [[0, 50, 4, 60.0, 40, 4, 50, [7], [], 0, []]]}\n'
        b'{"t": 1.0, "d": [[0, 50, 4, 60.0, 40, 4, 50, [7], [], 0, []]]}\n'
    )
    return [[each.name, each.busiest, each.fullest] for each in read_series(folder, 0.0)]


def copies_grow_and_are_set_aside(folder: Path) -> Any:
    from holdfast.hosts.connection import Push
    from holdfast.workbench.following.mirror import Mirror, View, stopped_writer

    mirror, view = Mirror(folder), View(folder)
    for push in (
        Push("data", "r", "driver_log", 0, b"one\n"),
        Push("data", "r", "driver_log", 4, b"two\n"),
        Push("data", "r", "metrics/1-a.jsonl", 0, b"{}\n"),
    ):
        mirror.apply(push)
    have = mirror.have()
    shown = b"".join(event.data for event in view.news() if hasattr(event, "data"))
    mirror.apply(Push("restart", "r", "driver_log", 0, b""))
    mirror.apply(Push("data", "r", "driver_log", 0, b"new\n"))
    again = b"".join(event.data for event in view.news() if hasattr(event, "data"))
    stopped_writer(folder)
    return [sorted(have), shown.decode(), again.decode(), sorted(os.listdir(folder))]


def a_host_is_remembered(folder: Path) -> Any:
    from holdfast.project import provenance
    from holdfast.project.folder import Project
    from holdfast.workbench.reach import contacts

    provenance.make(folder / ".holdfast", folder / "home")
    project = Project(folder, "0" * 32, "p", True, folder / "home")
    contacts.unreachable(project, "me@gpu1:2222", 5.0, "refused")
    contacts.reached(project, "me@gpu1:2222", 7.0)
    return [contacts.read(project, "me@gpu1:2222").reached]


def a_project_is_made_and_changed(folder: Path) -> Any:
    from holdfast.project.documents import set_value_in_file
    from holdfast.project.folder import ensure_identity, find_project
    from holdfast.project.templates import create_project

    create_project(folder / "iris", "iris", "blank", folder / "home")
    bare = folder / "bare"
    bare.mkdir()
    project = ensure_identity(find_project(bare, folder / "home"), folder)
    set_value_in_file(folder / "iris", "aml_config/local.runconfig", "Framework", "Python")
    return [
        find_project(folder / "iris", folder / "home").name,
        len(project.id),
        (bare / ".holdfast" / ".gitignore").read_bytes().decode(),
    ]


def commands_that_reach_nobody(folder: Path) -> Any:
    _script(folder)
    asked = (["--help"], ["history", "list"], ["status"], ["history", "list", "-o", "json"])
    return [_command(folder, *words)[0] for words in asked]


def submit_to_this_machine(folder: Path) -> Any:
    _script(folder)
    return _command(folder, "submit", "-c", "local", "train.py")


def a_whole_run_on_a_linux_machine(folder: Path) -> Any:
    """The other end is real; only the way to it is not ssh."""
    _script(folder)
    lead = Path(__file__).with_name("lead_there.py")
    os.environ["HOLDFAST_SSH"] = f"{sys.executable} {lead} {folder / 'account'}"
    (folder / "account").mkdir()
    (folder / "aml_config").mkdir()
    target = "type: remote\naddress: gpu1\nusername: me\nuserManagedEnvironment: true\n"
    (folder / "aml_config" / "gpu1.compute").write_text(target, encoding="utf-8")
    run = "Target: gpu1\nFramework: Python\nPrepareEnvironment: false\n"
    (folder / "aml_config" / "gpu1.runconfig").write_text(run, encoding="utf-8")
    code, out, err = _command(folder, "submit", "-c", "gpu1", "train.py")
    listed = _command(folder, "history", "list", "-o", "tsv", "--query", "[].status")
    if code:
        raise AssertionError(err)
    [run_folder] = [each for each in (folder / ".holdfast" / "runs").iterdir() if not each.name.startswith(".")]
    outputs = sorted(each.name for each in (run_folder / "outputs").iterdir())
    plan = json.loads((run_folder / "plan.json").read_bytes())
    return [code, out, err, listed, outputs, json.dumps(plan["command"]["environment"]["PYTHONPATH"])]


SCENES: list[Callable[[Path], Any]] = [
    every_module_is_imported,
    a_snapshot_is_taken_without_git,
    a_run_is_recorded_and_found,
    gpu_samples_are_read,
    copies_grow_and_are_set_aside,
    a_host_is_remembered,
    a_project_is_made_and_changed,
    commands_that_reach_nobody,
    submit_to_this_machine,
    a_whole_run_on_a_linux_machine,
]


def _script(folder: Path) -> None:
    text = "import os\nprint('on the host')\nos.makedirs('outputs', exist_ok=True)\n"
    text += "for name in ('model.txt', 'aux.txt', 'a:b'):\n    open('outputs/' + name, 'w').write('x')\n"
    text += "os.symlink('model.txt', 'outputs/latest')\n"
    (folder / "train.py").write_text(text, encoding="utf-8")


def _command(folder: Path, *words: str) -> list[Any]:
    """One command line, as it would be typed in `folder`: its code, stdout and stderr."""
    import contextlib
    import io

    from holdfast.cli.main import main

    buffers = (io.BytesIO(), io.BytesIO())
    out, err = (io.TextIOWrapper(each, encoding="utf-8") for each in buffers)
    os.chdir(folder)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    for stream in (out, err):
        stream.flush()
    return [code, *(written.getvalue().decode() for written in buffers)]


def _preload() -> None:
    """Imports what Holdfast uses, before the system changes."""
    import asyncio  # noqa: F401
    import ctypes  # noqa: F401
    import getpass  # noqa: F401
    import pathlib  # noqa: F401
    import shutil  # noqa: F401
    import socket  # noqa: F401
    import sqlite3  # noqa: F401
    import subprocess  # noqa: F401
    import tempfile  # noqa: F401
    import urllib.request  # noqa: F401
    import uuid  # noqa: F401

    import click.shell_completion  # noqa: F401
    import jmespath  # noqa: F401
    import rich.console
    import rich.live
    import rich.progress
    import rich.table  # noqa: F401
    import yaml  # noqa: F401


def main(system: str, place: str) -> None:
    _preload()
    other_system.become(system)
    if system == "win32":  # where files that name no encoding are read in another one
        warnings.filterwarnings("error", category=EncodingWarning, module=r"holdfast\.")
    found = {}
    for scene in SCENES:
        folder = Path(place, scene.__name__)
        folder.mkdir()
        try:
            found[scene.__name__] = {"found": scene(folder)}
        except BaseException:  # noqa: BLE001 - the answer reports it
            found[scene.__name__] = {"broke": traceback.format_exc()}
        os.chdir(place)
    print(json.dumps(found))
