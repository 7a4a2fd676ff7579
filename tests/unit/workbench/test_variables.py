"""The environment variables of a run."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.plan import Hole, text
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.variables import path_variables, project_variables, recorded_secrets, typed_variables


@pytest.fixture
def context(tmp_path):
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    return Context(tmp_path, {"PATH": f"{tmp_path / 'bin'}:/usr/bin", "A": "of the shell"}, tmp_path, tmp_path)


def test_programs_beside_the_runs_python_come_first(context, tmp_path):
    first = text("/opt/x/bin:", Hole.PATH)
    assert path_variables(text("/opt/x/bin/python"), False, {}, context) == {"PATH": first}
    assert path_variables(text(f"{tmp_path}/bin/python"), False, {}, context) == {}, "PATH finds it first already"
    assert path_variables(text(Hole.PYTHON), False, {}, context) == {"PATH": text(Hole.PATH)}, "the far side knows"
    assert path_variables(text("/opt/x/bin/python"), False, {"PATH": "/mine"}, context) == {}


def test_a_run_knows_its_project_the_package_that_it_is_and_on_this_system_where_it_came_from(tmp_path):
    names = ("HOLDFAST_PROJECT_DIRECTORY", "HOLDFAST_PROJECT_PACKAGE", "HOLDFAST_PROJECT_ORIGINAL")
    assert project_variables(tmp_path, False) == {names[0]: text(Hole.WORK)}
    (tmp_path / "setup.py").write_text("setup(name='My-Lib')")
    assert project_variables(tmp_path, True) == dict(
        zip(names, (text(Hole.WORK), text("my_lib"), text(str(tmp_path))), strict=True)
    )
    (tmp_path / "setup.py").write_text("setup(name='My-Lib', ext_modules=[])")
    assert names[1] not in project_variables(tmp_path, True), "without its compiled parts it would not work"


def test_a_variable_has_a_value_or_that_of_the_shell(context):
    assert typed_variables(("A", "B=b=c", "C="), context) == (("A", "of the shell"), ("B", "b=c"), ("C", ""))


@pytest.mark.parametrize("word", ["=x", "1A=x", "A-B=x", "NOT_SET", "HOLDFAST_RUN_ID=x", "A B=x", "Ä=x"])
def test_what_can_be_no_variable_is_refused(context, word):
    with pytest.raises(UsageError):
        typed_variables((word,), context)


def test_values_that_sound_secret_are_told_of():
    assert list(recorded_secrets((("WANDB_API_KEY", "x"), ("EPOCHS", "3"), ("hf_token", "y")))) == [
        "WANDB_API_KEY",
        "hf_token",
    ]
