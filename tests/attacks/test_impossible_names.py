"""Names that no file can have, and accounts that do not exist, in files and output of others: an error, no crash."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ExitCode
from holdfast.history.run_folder import RunFolders
from holdfast.model import Ending, Reason, Run, Status, Submission
from holdfast.snapshots.editable import editable_warnings
from holdfast.workbench.following import missing_file

NAMES = ("~nobodyxx/x", "~nobodyxx/x.py", "a" * 300, "b/" + "a" * 5000, "a\0b", "~a\0b/x", "b/" * 3000 + "x")

PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "pythonLocation": lambda name: {"evil.compute": {"type": "local", "pythonLocation": name}},
    "a Python that builds": lambda name: {
        "evil.compute": {"type": "local", "pythonLocation": name, "userManagedEnvironment": False}
    },
    "ArgumentVector": lambda name: {"evil.runconfig": {"ArgumentVector": [name]}},
    "CondaDependenciesFile": lambda name: {"evil.runconfig": {"CondaDependenciesFile": name}},
    "Target": lambda name: {"evil.runconfig": {"Target": name}},
    "volumes": lambda name: {
        "evil.compute": {"type": "localdocker", "baseDockerImage": "a", "volumes": [f"{name}:/x"]}
    },
    "privateKeyFile": lambda name: {"evil.compute": {"type": "remote", "address": "h", "privateKeyFile": name}},
}
COMMANDS = (
    ("submit", "--dry-run", "evil.runconfig"),
    ("submit", "--dry-run", "-c", "evil", "train.py"),
    ("environment", "check", "-c", "evil"),
    ("computetarget", "list"),
)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_command_ends_with_an_internal_error_whatever_a_project_names(tmp_path, command, place):
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "aml_config").mkdir()
    for name in NAMES:
        files = {
            "evil.compute": {"type": "local"},
            "evil.runconfig": {},
        }
        for file, content in {**files, **place(name)}.items():
            start = {"Target": "evil", "Framework": "Python"} if file.endswith("runconfig") else {}
            (tmp_path / "aml_config" / file).write_text(json.dumps({**start, **content}))
        for words in COMMANDS:
            outcome = command(*words)
            assert outcome.code != ExitCode.INTERNAL, (words, name[:40], outcome.err[-1500:])


@pytest.mark.parametrize("name", NAMES)
def test_packages_that_are_installed_from_such_a_folder_are_told_of(tmp_path, name):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "x-1.dist-info").mkdir(parents=True)
    document = {"url": f"file://{tmp_path}/elsewhere/" + name.replace("\0", "%00"), "dir_info": {"editable": True}}
    (packages / "x-1.dist-info" / "direct_url.json").write_text(json.dumps(document))
    (packages / "y.egg-link").write_text(f"/{name}\n.")
    (tmp_path / "pyvenv.cfg").write_text(f"home = /{name}\ninclude-system-site-packages = true\n")
    (tmp_path / "bin").mkdir()
    assert len(editable_warnings(tmp_path / "bin" / "python", tmp_path / "project")) == (0 if "\0" in name else 2)


def test_a_module_that_no_file_can_have_is_not_looked_for(tmp_path):
    submission = Submission("iris_1", 1, "p", "iris", "train.py", (), "local", "local", "local", "a" * 64, 1.0, "g")
    run = Run(submission, Status.FAILED, Ending(Reason.EXIT_CODE, code=1))
    folders = RunFolders(tmp_path / ".holdfast")
    folder = tmp_path / ".holdfast" / "runs" / "iris_1"
    folder.mkdir(parents=True)
    for module in (".x", ".", "a" * 3000, "x." + "a" * 3000):
        (folder / "driver_log").write_text(f"\nModuleNotFoundError: No module named '{module}'\n")
        sentence = missing_file.missing_file_sentence(tmp_path, folders, run)
        assert bool(sentence) == (not module.startswith("."))


def test_a_link_to_an_artifact_that_no_file_can_have_is_refused(recorded, command, tmp_path):
    run_id = recorded.add(files={"outputs/m.pkl": "m"})
    assert command("history", "promote", "-r", run_id, "-ap", "m.pkl", "-n", "m").code == 0
    link = tmp_path / "assets" / "m.link"
    for name in NAMES:
        link.write_text(json.dumps({**json.loads(link.read_text()), "artifact": name}))
        assert command("asset", "download", "-l", os.fspath(link), "-d", "dl").code == ExitCode.USAGE
    assert not (tmp_path / "dl").exists()


@pytest.mark.parametrize("name", [".git", ".GIT", ".holdfast", "git~1"])
def test_an_asset_is_not_what_git_or_holdfast_reads(recorded, command, tmp_path, name):
    run_id = recorded.add(files={f"outputs/{each}": "gitdir: /evil" for each in (name, "m.pkl")})
    assert command("history", "promote", "-r", run_id, "-ap", f"outputs/{name}", "-n", "m").code == ExitCode.USAGE
    assert command("history", "promote", "-r", run_id, "-ap", "outputs/m.pkl", "-n", "m").code == 0
    link = Path(tmp_path / "assets" / "m.link")
    link.write_text(link.read_text().replace("outputs/m.pkl", f"outputs/{name}"))
    assert command("asset", "download", "-l", os.fspath(link), "-d", "dl").code != 0
    assert not (tmp_path / "dl").exists()
