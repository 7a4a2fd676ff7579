"""From what was typed to the words that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ProjectError, UsageError
from holdfast.project.configuration import load_configuration
from holdfast.project.folder import find_project
from holdfast.workbench.submitting.planning import Job, Request, find_job
from holdfast.workbench.surroundings import Surroundings


def job(root: Path, vector: str, script: str | None, *arguments: str) -> Job:
    """What runs for `submit SCRIPT ARGUMENTS`, or `submit x.runconfig ARGUMENTS` without a script."""
    (root / "aml_config").mkdir()
    (root / "train.py").write_text("")
    (root / "aml_config" / "x.runconfig").write_text(f"Target: local\nFramework: Python\nArgumentVector: {vector}\n")
    project = find_project(root)
    around = Surroundings(root / "home", {}, root, root)
    request = Request(script, arguments, "x.runconfig")
    return find_job(project, request, load_configuration(project, "x.runconfig", None), around)


@pytest.mark.parametrize(
    ("vector", "script", "typed", "words"),
    [
        ("[train.py, --rate, 0.1]", None, ["--epochs", "3"], ["train.py", "--rate", "0.1", "--epochs", "3"]),
        ("[train.py]", None, ["--epochs"], ["train.py", "--epochs"]),
        ("[train.py, --rate]", None, [], ["train.py", "--rate"]),
        ("[$file, --rate]", "train.py", ["--epochs"], ["train.py", "--rate", "--epochs"]),
        ("[$file, --rate]", None, ["train.py", "--epochs"], ["train.py", "--rate", "--epochs"]),
        ("[other.py, --rate]", "train.py", ["--epochs"], ["train.py", "--epochs"]),
    ],
)
def test_typed_arguments_follow_those_of_the_run_configuration(
    tmp_path: Path, vector: str, script: str | None, typed: list[str], words: list[str]
) -> None:
    assert job(tmp_path, vector, script, *typed) == Job("train.py", tuple(words), tuple(words[1:]))


def test_a_run_configuration_that_names_no_script_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No script is named"):
        job(tmp_path, "[$file]", None)


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (["data/x.csv"], "In that folder there are no Python files."),
        (["data/b.py", "data/a.py"], "Name the script in it: data/a.py, data/b.py"),
    ],
)
def test_of_a_folder_only_scripts_that_exist_are_suggested(tmp_path: Path, files: list[str], hint: str) -> None:
    (tmp_path / "data").mkdir()
    for name in files:
        (tmp_path / name).write_text("")
    for typed in ("data", "data/"):
        with pytest.raises(ProjectError, match="is a folder, not a script") as raised:
            job_of(tmp_path, typed)
        assert raised.value.hint == hint


def job_of(root: Path, script: str) -> Job:
    project = find_project(root)
    around = Surroundings(root / "home", {}, root, root)
    return find_job(project, Request(script), load_configuration(project, None, None), around)
