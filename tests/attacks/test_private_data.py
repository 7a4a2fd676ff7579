"""A clone whose run configuration names data of the user's: what may hold secrets is sent only if the user types it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ProjectError
from holdfast.project.configuration import Configuration, load_configuration
from holdfast.project.data_wishes import parse_data
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.chosen_data import with_data
from kit.projects import project_at

PRIVATE = (".ssh", ".config/gh", "work/.env", "keys/id_rsa", "sets/credentials")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    home = tmp_path / "me"
    for name in (*PRIVATE, "sets/tiny"):
        (home / name).mkdir(parents=True)
    (home / "clone" / "aml_config").mkdir(parents=True)
    os.symlink(home / ".ssh", home / "clone" / "innocent")
    return Context(tmp_path / "hf", {}, home / "clone", home)


def read(context: Context, source: str) -> tuple[Configuration, Project]:
    project = project_at(context.directory)
    text = f"Target: local\nFramework: Python\nData:\n  - {source}:data/x\n"
    (context.directory / "aml_config" / "local.runconfig").write_text(text)
    return load_configuration(project, "local", None), project


@pytest.mark.parametrize("source", [*(f"~/{name}" for name in PRIVATE), "innocent", "../.ssh", "~", "..", "/"])
def test_a_clone_sends_no_private_folder(context: Context, source: str) -> None:
    configuration, project = read(context, source)
    with pytest.raises(ProjectError):
        with_data(configuration, (), project, context)
    typed = with_data(configuration, (parse_data(f"{source}:data/x"),), project, context)
    assert typed.run.data[0].target == "data/x"


def test_data_that_nothing_speaks_against_is_taken(context: Context) -> None:
    configuration, project = read(context, "~/sets/tiny")
    assert with_data(configuration, (), project, context).run.data == (parse_data("~/sets/tiny:data/x"),)
