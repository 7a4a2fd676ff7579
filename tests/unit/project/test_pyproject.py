"""`pyproject.toml` and `uv.lock` as environment files."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.environment_spec import EnvironmentSpec, Requirement, spec_digest
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.problems import Problem


def read(root: Path, text: str, name: str = "pyproject.toml") -> tuple[EnvironmentSpec | None, list[Problem]]:
    (root / "pyproject.toml").write_text(text, encoding="utf-8")
    return read_environment_spec(root, name)


def test_dependencies_and_python_are_read_with_their_lines(tmp_path):
    text = (
        '[project]\nname = "x"\nrequires-python = ">=3.10, <4"\ndependencies = [\n  "numpy>=2",  # why\n'
        "  'six; python_version < \"3.9\"',\n]\n[project.optional-dependencies]\ngpu = ['torch']\n"
        "[dependency-groups]\ndev = ['pytest']\n"
    )
    spec, problems = read(tmp_path, text)
    assert problems == []
    assert spec == EnvironmentSpec(
        file="pyproject.toml",
        python=">=3.10,<4",
        pip=(
            Requirement("numpy>=2", 5, "pyproject.toml"),
            Requirement('six; python_version < "3.9"', 6, "pyproject.toml"),
        ),
        python_from=Requirement(">=3.10, <4", 3, "pyproject.toml"),
    )


def test_the_version_beside_it_wins_over_what_is_required(tmp_path):
    (tmp_path / ".python-version").write_text("3.12\n")
    spec, _ = read(tmp_path, '[project]\nname = "x"\nrequires-python = ">=3.10"\n')
    assert spec is not None and spec.python == "3.12"


def test_settings_of_uv_become_options(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "mine-1-py3-none-any.whl").write_bytes(b"")
    text = """
[project]
name = "x"
dependencies = ["a", "mine[gpu]>=1", "B.c", "d ; sys_platform == 'linux'", "torch>=2"]
[tool.uv]
constraint-dependencies = ["a<2"]
find-links = ["w"]
prerelease = "allow"
[[tool.uv.index]]
name = "ours"
url = "https://me:s3cret@ours.example/simple"
default = true
[[tool.uv.index]]
name = "other"
url = "https://other.example/simple"
[tool.uv.sources]
mine = { path = "w/mine-1-py3-none-any.whl" }
b-c = { git = "https://h.example/b.git", tag = "v1", subdirectory = "c" }
d = { url = "https://h.example/d-1.zip" }
torch = { index = "other" }
"""
    spec, problems = read(tmp_path, text)
    assert spec is not None and problems == []
    assert [each.text for each in spec.pip] == [
        "--index-url https://${HOLDFAST_INDEX_05EFD7D5}@ours.example/simple",
        "--extra-index-url https://other.example/simple",
        "--find-links ${HOLDFAST_FILES}/w",
        "a",
        "${HOLDFAST_FILES}/w/mine-1-py3-none-any.whl[gpu]",
        "b-c @ git+https://h.example/b.git@v1#subdirectory=c",
        "d @ https://h.example/d-1.zip ; sys_platform == 'linux'",
        "torch>=2",
    ]
    assert [each.text for each in spec.constraints] == ["a<2"]
    assert spec.arguments == ("--prerelease", "allow")
    assert spec.files == ("w", "w/mine-1-py3-none-any.whl")


def test_an_index_for_some_packages_only_is_said(tmp_path):
    text = '[project]\nname = "x"\n[[tool.uv.index]]\nname = "t"\nurl = "https://t.example"\nexplicit = true\n'
    spec, problems = read(tmp_path, text)
    assert spec is not None
    assert [(each.line, each.severity) for each in problems] == [(5, "warning")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[project\n", 1, "is not TOML"),
        ("[tool.ruff]\n", 0, "is missing"),
        ("[tool.poetry.dependencies]\npython = '^3.10'\n", 1, "is Poetry's own form"),
        ("[project]\nname = 'x'\ndependencies = 'numpy'\n", 3, "must be a list of texts"),
        ("[project]\nname = 'x'\ndependencies = ['numpy=1']\n", 3, "`numpy=1` is conda's spelling"),
        ("[project]\nname = 'x'\nrequires-python = '^3.10'\n", 3, "`^3.10` is not a version of Python"),
        ("[project]\nname='x'\n[tool.uv]\noverride-dependencies = ['a']\n", 4, "cannot be used without a lock"),
        (
            "[project]\nname='x'\ndependencies=['a']\n[tool.uv.sources]\na = { workspace = true }\n",
            3,
            "the source of `a` (`workspace`) cannot be used here",
        ),
        (
            "[project]\nname='x'\ndependencies=['a']\n[tool.uv.sources]\na = { path = 'lib' }\n",
            3,
            "there is no `lib` in the project",
        ),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path, text, line, message):
    spec, problems = read(tmp_path, text)
    assert spec is None
    assert problems[0].message.startswith(message) and problems[0].line == line and problems[0].remedy


def test_a_lock_needs_its_project_beside_it(tmp_path):
    spec, problems = read_environment_spec(tmp_path, "sub/uv.lock")
    assert spec is None and len(problems) == 1
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "uv.lock").write_text("version = 1\n")
    spec, problems = read_environment_spec(tmp_path, "sub/uv.lock")
    assert spec is None and problems[0].message == "there is no `sub/pyproject.toml` beside it"


def test_a_lock_that_is_not_exported_yet_has_no_digest(tmp_path):
    (tmp_path / "uv.lock").write_text("version = 1\n")
    spec, problems = read(tmp_path, "[project]\nname='x'\nrequires-python = '==3.11.*'\n", "uv.lock")
    assert spec is not None and problems == []
    assert (spec.python, spec.lock_file) == ("3.11", "uv.lock")
    with pytest.raises(ValueError, match="exported first"):
        spec_digest(spec, tmp_path)
