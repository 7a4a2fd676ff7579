"""Notes before a run about packages that it will not get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.packages import read_configuration
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import project_at


def first_event(root: Path, request: SubmitRequest) -> events.Event:
    context = Context(root / "home", {}, root, root / "account")
    happening = submit(project_at(root), request, context)
    try:
        return next(happening)
    finally:
        happening.close()  # type: ignore[attr-defined]  # it is a generator; no host is reached


@pytest.mark.parametrize("compute", [None, "type: local\n"])
def test_the_builtin_target_too_says_that_it_uses_no_conda_file(tmp_path, compute):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "conda_dependencies.yml").write_text("dependencies: []\n")
    if compute is not None:
        (tmp_path / "aml_config" / "local.compute").write_text(compute)
    noted = first_event(tmp_path, SubmitRequest("train.py"))
    assert isinstance(noted, events.Noted)
    assert noted.text == (
        "The target `local` runs on your own Python, so aml_config/conda_dependencies.yml is not used; "
        "to build it: -d aml_config/conda_dependencies.yml"
    )


def test_a_file_that_is_found_is_said_and_so_are_the_others(tmp_path):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "local.compute").write_text("type: local\nuserManagedEnvironment: auto\n")
    (tmp_path / "requirements.txt").write_text("six\n")
    noted = first_event(tmp_path, SubmitRequest("train.py"))
    assert noted == events.Noted("Packages: requirements.txt (found). Another: -d FILE; your own Python: -d none")
    (tmp_path / "environment.yml").write_text("dependencies: [six]\n")
    noted = first_event(tmp_path, SubmitRequest("train.py"))
    assert isinstance(noted, events.Noted) and "(found; also here: environment.yml)" in noted.text


@pytest.mark.parametrize(("answer", "file"), [("environment.yml", "environment.yml"), (None, "requirements.txt")])
def test_the_user_is_asked_once_where_there_are_several(tmp_path, answer, file):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "requirements.txt").write_text("six\n")
    (tmp_path / "environment.yml").write_text("dependencies: [six]\n")
    asked = []

    def choose(question: str, answers: Sequence[str]) -> str | None:
        asked.append(tuple(answers))
        return answer

    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "local.compute").write_text("type: local\nuserManagedEnvironment: auto\n")
    context = Context(tmp_path / "home", {}, tmp_path, tmp_path / "account", choose=choose)
    for _ in range(2):
        found = read_configuration(project_at(tmp_path), SubmitRequest("train.py"), context)
        assert found.packages is not None and found.packages.written == file
    assert asked == [("requirements.txt", "environment.yml", "none")] * (1 if answer else 2)
