"""Chains of links, as a script, a box or a clone makes them: no command calls itself for each, or looks at all of them
for each. A program follows forty."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from holdfast.errors import ExitCode
from holdfast.farside.environments import user_python
from holdfast.farside.environments.installed import site_folders
from holdfast.farside.machine import mounts, pythons
from holdfast.farside.system.real_paths import MOST_LINKS
from holdfast.snapshots.editable import editable_warnings
from holdfast.workbench.following.kept_links import remove_leaving
from holdfast.workbench.records.artifacts import LinkLeftOut, _walk
from unit.farside.test_real_paths import chained

LINKS = 1100
"""More than Python calls itself."""


def outputs(recorded) -> Path:
    run_id = recorded.add(files={"outputs/model.txt": "mine"})
    folder: Path = recorded.folders.path(run_id) / "outputs"
    chained(folder, LINKS)
    (folder / "circle").symlink_to("circle")
    return folder


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("history", "info"), 0),
        (("history", "info", "-o", "json"), 0),
        (("history", "info", "--artifact", "outputs/model.txt"), 0),
        (("history", "info", "--artifact", "outputs/l0"), ExitCode.USAGE),
        (("history", "download", "-r", "last", "-d", "fetched"), 0),
    ],
)
def test_outputs_that_are_a_chain_of_links_end_no_command(recorded, command, words, code):
    outputs(recorded)
    said = command(*words)
    assert (said.code, "internal error" in said.err) == (code, False), said.err[-2000:]


def test_a_state_with_a_chain_of_links_can_be_trusted(recorded, command):
    state = outputs(recorded).parents[2]
    (state / "origin.json").unlink()
    said = command("project", "trust", "--yes")
    assert (said.code, "internal error" in said.err) == (0, False), said.err[-2000:]


def test_a_link_that_a_program_can_follow_is_an_artifact_and_a_longer_way_is_left_out(recorded):
    folder = outputs(recorded)
    left_out = {each.path for each in _walk(folder.parent) if isinstance(each, LinkLeftOut)}
    ends = [f"outputs/l{number}" for number in range(LINKS - MOST_LINKS, LINKS)]
    assert left_out == {f"outputs/l{number}" for number in range(LINKS)} - set(ends) | {"outputs/circle"}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder of a project that looks like an environment, with a chain of links in it."""
    folder = tmp_path / "venv"
    site = folder / "lib/python3.11/site-packages"
    for each in (folder / "bin", site):
        each.mkdir(parents=True)
    chained(folder / "bin", LINKS)
    (folder / "pyvenv.cfg").write_text(
        f"home = {folder}/bin/l0/bin\ninclude-system-site-packages = true\nversion = 3.11.2\n"
    )
    (folder / "bin/python").symlink_to("l0")
    (folder / "bin/python3").symlink_to(sys.executable)
    (site / "own.egg-link").write_text(f"{folder}/bin/l0\n")
    (folder / "lib64").symlink_to("bin/l0")
    (folder / "Lib").symlink_to("bin/l0")
    return folder


def test_an_environment_with_a_chain_of_links_is_looked_at(environment, tmp_path):
    python = environment / "bin" / "python"
    assert [each.path for each in editable_warnings(python, tmp_path)] == [str(environment / "bin" / "l0")]
    (environment / "pyvenv.cfg").unlink()
    assert editable_warnings(python, tmp_path) == []  # the snapshot has it
    chained(environment / "lib" / "python3.11", LINKS)
    (environment / "lib" / "python3.12").symlink_to("python3.11/l0")
    assert [each[-26:] for each in site_folders(str(environment))] == ["b/python3.11/site-packages"]


@pytest.mark.parametrize(
    "look",
    [
        pythons.version_by_place,
        pythons._version_by_name,
        user_python.beside,
        lambda path: mounts.mount_of(path, mounts.read_mounts({})),
    ],
    ids=["version by place", "version by name", "packages", "mount"],
)
def test_a_python_behind_a_chain_of_links_is_looked_at(environment, look: Callable[[str], object]):
    (environment / "pyvenv.cfg").unlink()
    look(str(environment / "bin" / "python"))


PROJECT = {
    "aml_config/x.runconfig": "Target: x\nFramework: Python\nCondaDependenciesFile: requirements.txt\n",
    "aml_config/x.compute": "type: local\nuserManagedEnvironment: true\npythonLocation: venv/bin/python3\n",
    "aml_config/y.runconfig": "Target: y\nFramework: Python\nCondaDependenciesFile: requirements.txt\n",
    "aml_config/y.compute": "type: local\nuserManagedEnvironment: false\n",
    "requirements.txt": "-r chain/l0\n./chain/l1\n",
    "train.py": "print(1)\n",
}


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "--dry-run", "-c", "x", "train.py"),
        ("submit", "--dry-run", "-c", "y", "train.py"),
        ("submit", "--dry-run", "-c", "chain/l0/y.runconfig", "train.py"),
        ("environment", "check", "-c", "x"),
        ("project", "restore", "-r", "last", "-p", "chain/l0"),
    ],
)
def test_a_clone_with_chains_of_links_ends_no_command(environment, recorded, command, tmp_path, words):
    recorded.add(files={"outputs/model.txt": "mine"})
    for path, text in PROJECT.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "chain").mkdir()
    chained(tmp_path / "chain", LINKS)
    said = command(*words)
    assert said.code != ExitCode.INTERNAL and "internal error" not in said.err, said.err[-2000:]


@pytest.mark.parametrize(("end", "removed"), [("end", 0), ("../out", 1), ("l0", 1)])
def test_a_chain_of_twice_the_links_takes_twice_the_work(tmp_path, monkeypatch, end, removed):
    counts = []
    for links in (200, 400):
        top = tmp_path / str(links)
        top.mkdir()
        chained(top, links)
        (top / f"l{links - 1}").unlink()
        (top / f"l{links - 1}").symlink_to(end)
        with monkeypatch.context() as patched:
            look = Mock(side_effect=os.readlink)
            patched.setattr(os, "readlink", look)
            assert len(list(remove_leaving(top))) == removed * links
        counts.append(look.call_count)
    assert counts[1] < 2.2 * counts[0]


def test_a_way_that_grows_with_each_link_is_given_up(tmp_path):
    """Each adds to where the one before it leads, which does not exist."""
    (tmp_path / "l0").symlink_to("/".join("gone" for _ in range(100)))
    for number in range(1, 200):
        (tmp_path / f"l{number}").symlink_to(f"l{number - 1}/" + "/".join("gone" for _ in range(100)))
    assert len(list(remove_leaving(tmp_path))) == 192
