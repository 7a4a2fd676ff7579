"""From the command line to the arguments that run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, UsageError
from holdfast.frozen import replace
from holdfast.plan import Plan, RunLimits
from holdfast.project.configuration import load_configuration
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import product_of
from holdfast.workbench.submitting.job import Job, find_job
from holdfast.workbench.submitting.run_plan import Identity, Intent, make_plan, secret_values
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import project_at


def job(root: Path, vector: str, script: str | None, *arguments: str) -> Job:
    """What runs for `submit SCRIPT ARGUMENTS`, or `submit x.runconfig ARGUMENTS` without a script."""
    (root / "aml_config").mkdir()
    (root / "train.py").write_text("")
    (root / "aml_config" / "x.runconfig").write_text(f"Target: local\nFramework: Python\nArgumentVector: {vector}\n")
    return found(root, SubmitRequest(script, arguments, "x.runconfig"))


def found(root: Path, request: SubmitRequest) -> Job:
    project = project_at(root)
    configuration = load_configuration(project, request.run_configuration, None)
    return find_job(project, request, configuration, Context(root / "home", {}, root, root))


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
def test_typed_arguments_follow_those_of_the_run_configuration(tmp_path, vector, script, typed, words):
    assert job(tmp_path, vector, script, *typed) == Job("train.py", tuple(words), tuple(words[1:]), "train.py")


def test_a_run_configuration_that_names_no_script_needs_one(tmp_path):
    with pytest.raises(UsageError, match="No script is named"):
        job(tmp_path, "[$file]", None)


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        (["data/x.csv"], "It has no Python files."),
        (["data/b.py", "data/a.py"], "Name the script in it: data/a.py, data/b.py"),
    ],
)
def test_of_a_folder_only_scripts_that_exist_are_suggested(tmp_path, files, hint):
    (tmp_path / "data").mkdir()
    for name in files:
        (tmp_path / name).write_text("")
    for typed in ("data", "data/"):
        with pytest.raises(ProjectError, match="is a folder, not a script") as raised:
            found(tmp_path, SubmitRequest(typed))
        assert raised.value.hint == hint


def planned(root: Path, lines: str, request: SubmitRequest, job: Job = Job("train.py", ("train.py",), ())) -> Plan:  # noqa: B008 - frozen
    """The plan of a run on this machine, with these lines in its run configuration."""
    (root / "aml_config").mkdir()
    (root / "aml_config" / "x.runconfig").write_text(f"Target: local\nFramework: Python\n{lines}")
    project, context = project_at(root), Context(root / "home", {"PATH": os.environ["PATH"]}, root, root)
    configuration = load_configuration(project, "x", None)
    intent = Intent(project, request, configuration, job, product_of(configuration.target, context))
    return make_plan(intent, Identity("iris_1", "g", "s" * 64), context)


@pytest.mark.parametrize(
    ("lines", "typed", "limits"),
    [
        ("", {}, RunLimits(10.0, None)),
        ("TimeLimit: 1h\nGraceTime: 30s\n", {}, RunLimits(30.0, 3600.0)),
        ("TimeLimit: 1h\nGraceTime: 30s\n", {"time_limit": 60.0, "grace": 5.0}, RunLimits(5.0, 60.0)),
        ("TimeLimit: 1h\nGraceTime: 30s\n", {"grace": 0.0}, RunLimits(0.0, 3600.0)),
        ("GraceTime: 0s\n", {}, RunLimits(0.0, None)),
    ],
)
def test_limits_that_are_typed_count_more_than_those_of_the_file(tmp_path, lines, typed, limits):
    assert planned(tmp_path, lines, replace(SubmitRequest("train.py"), **typed)).limits == limits


@pytest.mark.parametrize("typed", ["./-x.py", "-x.py"])
def test_a_script_that_looks_like_an_option_is_none(tmp_path: Path, typed: str) -> None:
    (tmp_path / "-x.py").write_text("")
    assert found(tmp_path, SubmitRequest(typed, ("-v",))).words == ("./-x.py", "-v")


@pytest.mark.parametrize("argument", ["hunter22", "--url=https://me:hunter22@host"])
def test_a_secret_in_an_argument_is_refused_without_showing_it(tmp_path: Path, argument: str) -> None:
    context = Context(tmp_path, {"TOKEN": "hunter22"}, tmp_path, tmp_path)
    with pytest.raises(UsageError, match="`TOKEN` stands in the script's arguments") as caught:
        secret_values(("TOKEN",), Job("train.py", ("train.py", argument), (argument,)), context)
    assert "hunter22" not in str(caught.value)
