"""Problems as people read them: one line each, and at most a page."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigurationError
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.problems import Problem


@pytest.mark.parametrize("name", ["Pipfile", "Pipfile.lock", "poetry.lock", "pdm.lock", "packages"])
def test_a_file_of_another_program_is_told_how_to_become_one_that_is_read(tmp_path, name):
    (tmp_path / name).write_text("")
    spec, (problem,) = read_environment_spec(tmp_path, name)
    assert spec is None
    assert "\\x" not in str(problem)
    assert "`pyproject.toml`, `uv.lock`" in problem.remedy
    assert ("poetry export" in problem.remedy) is (name == "poetry.lock")


def test_a_remedy_of_several_lines_is_shown_on_one():
    assert str(Problem("a", 1, "", "is wrong", "Write this.\nOr that.")) == "a:1: is wrong. Write this. Or that."


@pytest.mark.parametrize(("count", "lines"), [(20, 21), (21, 22), (500, 22)])
def test_many_problems_are_counted_and_not_all_shown(count, lines):
    error = ConfigurationError([Problem("a", each, "", "is wrong") for each in range(count)])
    assert error.message.startswith(f"{count} problems ")
    assert len(error.message.splitlines()) == lines
    assert error.message.endswith(f"… and {count - 20} more.") is (count > 20)
    assert len(error.problems) == count
