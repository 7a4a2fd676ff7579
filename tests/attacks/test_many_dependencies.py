"""A `pyproject.toml` with thousands of dependencies is read in time proportional to their number."""

from __future__ import annotations

import pytest

from holdfast.project.packages_search import read_environment_spec
from holdfast.project.pyproject import parse_toml, read_pyproject
from holdfast.project.setup_files import read_wishes

pytestmark = pytest.mark.time_limit(40, "what looks through all of the text for each does not end")


def test_thousands_of_dependencies_are_found_in_their_lines(tmp_path):
    lines = [f'"a{number}",' for number in range(40_000)]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[project]", "dependencies = [", *lines, "]"]))
    spec, _ = read_pyproject(tmp_path, "pyproject.toml")
    assert spec is not None
    assert [each.line for each in spec.pip] == list(range(3, 40_003))


def test_thousands_of_dependencies_that_are_written_otherwise(tmp_path):
    lines = [f'"\\u0061{number}",' for number in range(40_000)]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[project]", "dependencies = [", *lines, "]"]))
    spec, _ = read_pyproject(tmp_path, "pyproject.toml")
    assert spec is not None
    assert {each.line for each in spec.pip} == {0}


def test_thousands_of_sources(tmp_path):
    names = [f"a{number}" for number in range(20_000)]
    sources = [f'{name}.index = "x"' for name in names]
    (tmp_path / "pyproject.toml").write_text(
        "\n".join(["[project]", f"dependencies = {names}", "[tool.uv.sources]", *sources])
    )
    spec, _ = read_pyproject(tmp_path, "pyproject.toml")
    assert spec is not None
    assert len(spec.pip) == 20_000


def test_thousands_of_lines_about_one_folder(tmp_path):
    extras = "".join(f"a{number} = ['b{number}']\n" for number in range(5_000))
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname='x'\n[project.optional-dependencies]\n{extras}")
    (tmp_path / "r.txt").write_text("".join(f"-e .[a{number}]\n" for number in range(5_000)))
    spec, problems = read_environment_spec(tmp_path, "r.txt")
    assert spec is not None, problems
    assert len(spec.pip) == 5_000


def test_names_that_are_added_to_each_other_for_ever(tmp_path):
    lines = "".join(f"A{number + 1} = A{number} + A{number}\n" for number in range(5_000))
    (tmp_path / "setup.py").write_text(f"A0 = ['x']\n{lines}setup(install_requires=A4999)")
    assert not read_wishes(tmp_path).is_whole


@pytest.mark.parametrize("text", ["a." * 450_000 + "a = 1", 2 * f'["{" " * 450_000}"]\n'], ids=["parts", "spaces"])
def test_a_key_of_a_megabyte(text):
    """The parser takes the square of the parts. What it says of a key that is there twice has all of it."""
    with pytest.raises(ValueError):
        parse_toml(text)
