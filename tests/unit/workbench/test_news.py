"""Notes before a run about packages that it will not get."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import project_at

BUILTIN = "`type: local` and `userManagedEnvironment: false`, as two lines of aml_config/local.compute, would build it."


def first_event(root: Path, request: SubmitRequest) -> events.Event:
    context = Context(root / "home", {}, root, root / "account")
    happening = submit(project_at(root), request, context)
    try:
        return next(happening)
    finally:
        happening.close()  # type: ignore[attr-defined]  # it is a generator; no host is reached


@pytest.mark.parametrize(
    ("compute", "what_to_do"),
    [(None, BUILTIN), ("type: local\n", "`userManagedEnvironment: false` in aml_config/local.compute would build it.")],
)
def test_the_builtin_target_too_says_that_it_uses_no_conda_file(tmp_path, compute, what_to_do):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "conda_dependencies.yml").write_text("dependencies: []\n")
    if compute is not None:
        (tmp_path / "aml_config" / "local.compute").write_text(compute)
    noted = first_event(tmp_path, SubmitRequest("train.py"))
    assert isinstance(noted, events.Noted)
    assert noted.text.endswith(f"aml_config/conda_dependencies.yml is not used; {what_to_do}")


def test_a_file_that_was_typed_is_said_to_be_of_no_use_there(tmp_path):
    (tmp_path / "train.py").write_text("")
    (tmp_path / "needs.txt").write_text("six\n")
    noted = first_event(tmp_path, SubmitRequest("train.py", conda_file="needs.txt"))
    assert isinstance(noted, events.Noted)
    assert noted.text.startswith("The target `local` ")
    assert noted.text.endswith(f" your own Python, so needs.txt is not used; {BUILTIN}")
