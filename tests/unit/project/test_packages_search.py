"""Which file of packages is found, which parts of it count, and what is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UsageError
from holdfast.project.compute import BUILTIN_LOCAL, ComputeTarget
from holdfast.project.packages_search import choose_packages, find_packages, read_environment_spec, remember
from holdfast.project.packages_wish import PackagesChoice, PackagesWish, split_parts, with_parts
from holdfast.project.runconfig import RunConfiguration
from kit.projects import project_at

RUN = RunConfiguration("local", "box")
BOX = ComputeTarget("box", "remote", "gpu1", user_managed_environment=None)
PYPROJECT = """[project]
name = "my.Tool"
dependencies = ["six"]

[project.optional-dependencies]
atari = ["ale-py", "my-tool[video]"]
video = ["imageio"]
dev = ["ruff"]
circle = ["my_tool[circle]", "attrs"]

[dependency-groups]
test = ["pytest"]
dev = ["mypy", { include-group = "test" }]
"""


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_txt", ".txt").replace("_yml", ".yml").replace("_toml", ".toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_files_are_found_in_their_order(tmp_path):
    write(tmp_path, requirements_txt="six\n", environment_yml="name: x\ndependencies:\n- pip\n")
    write(tmp_path, pyproject_toml=PYPROJECT)
    assert find_packages(tmp_path, PackagesWish()) == ("pyproject.toml", "requirements.txt", "environment.yml")
    (tmp_path / "uv.lock").write_text("version = 1\n")
    assert find_packages(tmp_path, PackagesWish())[0] == "uv.lock"
    assert find_packages(tmp_path, PackagesWish(parts=("atari",))) == ("uv.lock",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n"),
        ("pyproject.toml", "[project]\nname = 'x'\ndependencies = []\n"),
        ("pyproject.toml", "[tool.x]\ndependencies = 3\nproject = 'x'\ntool = [\n"),
        ("requirements.txt", "# none\n\n   \n"),
        ("environment.yml", "services: [a]\n"),
        ("uv.lock", "version = 1\n"),
        ("setup.cfg", "[flake8]\n"),
        ("setup.py", "from setuptools import setup\nsetup()\n"),
    ],
)
def test_a_file_that_lists_nothing_is_not_one_of_them(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / "environment.yaml").mkdir()
    assert find_packages(tmp_path, PackagesWish()) == ()


def test_the_nearest_folder_with_a_file_counts_then_that_of_the_script(tmp_path):
    write(tmp_path, examples__mnist__requirements_txt="six\n", examples__mnist__deep__x_txt="")
    found = ("examples/mnist/requirements.txt",)
    assert find_packages(tmp_path, PackagesWish(folder="examples/mnist/deep")) == found
    assert find_packages(tmp_path, PackagesWish(script="examples/mnist/main.py")) == found
    assert find_packages(tmp_path, PackagesWish(folder="examples")) == ()
    write(tmp_path, requirements_txt="attrs\n")
    assert find_packages(tmp_path, PackagesWish(folder="examples/mnist")) == found
    assert find_packages(tmp_path, PackagesWish(script="examples/mnist/main.py")) == ("requirements.txt",)


def test_a_target_of_ones_own_python_builds_only_what_is_asked_for(tmp_path):
    project = project_at(tmp_path)
    assert choose_packages(project, RUN, BOX, PackagesWish()) is None
    write(tmp_path, pyproject_toml=PYPROJECT)
    assert choose_packages(project, RUN, BOX, PackagesWish()) == PackagesChoice("pyproject.toml", True)
    assert choose_packages(project, RUN, BOX, PackagesWish("none")) is None
    named = choose_packages(project, RUN, BUILTIN_LOCAL, PackagesWish("a.txt"))
    assert named == PackagesChoice("a.txt")
    parts = choose_packages(project, RUN, BUILTIN_LOCAL, PackagesWish(parts=("atari", "group:dev")))
    assert parts == PackagesChoice("pyproject.toml[atari,group:dev]", True)


def test_a_choice_is_remembered_while_the_files_are_the_same(tmp_path):
    project = project_at(tmp_path)
    project.state_directory.mkdir(exist_ok=True)
    write(tmp_path, pyproject_toml=PYPROJECT, requirements_txt="six\n")
    first = choose_packages(project, RUN, BOX, PackagesWish())
    assert first == PackagesChoice("pyproject.toml", True, ("requirements.txt",), False)
    among = ("pyproject.toml", "requirements.txt")
    remember(project, among, "requirements.txt")
    chosen = choose_packages(project, RUN, BOX, PackagesWish())
    assert chosen == PackagesChoice("requirements.txt", True, ("pyproject.toml",), True)
    remember(project, among, "none")
    assert choose_packages(project, RUN, BOX, PackagesWish()) is None
    write(tmp_path, environment_yml="dependencies: [six]\n")
    anew = choose_packages(project, RUN, BOX, PackagesWish())
    assert anew is not None and not anew.is_remembered


@pytest.mark.parametrize("text", ["", "[]", "{", '{"chosen": 3}', '{"chosen": [[1]]}', '{"chosen": [["a", ["b"]]]}'])
def test_a_memory_that_says_nothing_of_use_is_none(tmp_path, text):
    project = project_at(tmp_path)
    project.state_directory.mkdir(exist_ok=True)
    (project.state_directory / "packages.json").write_text(text)
    write(tmp_path, pyproject_toml=PYPROJECT, requirements_txt="six\n")
    found = choose_packages(project, RUN, BOX, PackagesWish())
    assert found is not None and found.written == "pyproject.toml"


def test_parts_are_wanted_only_of_what_has_some(tmp_path):
    project = project_at(tmp_path)
    write(tmp_path, requirements_txt="six\n")
    with pytest.raises(UsageError, match="There is no"):
        choose_packages(project, RUN, BOX, PackagesWish(parts=("atari",)))
    with pytest.raises(UsageError, match="has no extras"):
        choose_packages(project, RUN, BOX, PackagesWish("requirements.txt", ("atari",)))
    with pytest.raises(UsageError):
        choose_packages(project, RUN, BOX, PackagesWish("none", ("atari",)))


def test_parts_stand_in_brackets():
    assert split_parts("a/pyproject.toml[x, group:y,x,]") == ("a/pyproject.toml", ("x", "group:y"))
    assert split_parts("data[1].txt") == ("data[1].txt", ())
    assert with_parts("uv.lock[x]", ("y",)) == "uv.lock[x,y]"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("", ["six"]),
        ("atari", ["six", "ale-py", "imageio"]),
        ("Circle,video", ["six", "attrs", "imageio"]),
        ("dev", ["six", "ruff"]),
        ("group:dev", ["six", "mypy", "pytest"]),
        ("test", ["six", "pytest"]),
    ],
)
def test_extras_and_groups_bring_what_they_include(tmp_path, parts, expected):
    write(tmp_path, pyproject_toml=PYPROJECT)
    spec, problems = read_environment_spec(tmp_path, f"pyproject.toml[{parts}]" if parts else "pyproject.toml")
    assert spec is not None, problems
    assert [each.text for each in spec.pip] == expected


@pytest.mark.parametrize("file", ["pyproject.toml", "uv.lock"])
def test_an_unknown_part_lists_those_that_are_there(tmp_path, file):
    write(tmp_path, pyproject_toml=PYPROJECT)
    (tmp_path / "uv.lock").write_text("version = 1\n")
    spec, problems = read_environment_spec(tmp_path, f"{file}[atarii]")
    assert spec is None
    assert problems[-1].message == "there is no extra and no group `atarii`"
    assert problems[-1].remedy == "Available: `atari`, `circle`, `dev`, `video`, `group:dev`, `group:test`."


def test_the_parts_of_a_lock_become_options_of_uv(tmp_path):
    write(tmp_path, pyproject_toml=PYPROJECT)
    (tmp_path / "uv.lock").write_text("version = 1\n")
    spec, _ = read_environment_spec(tmp_path, "uv.lock[dev,group:dev,test]")
    assert spec is not None
    assert spec.lock_parts == ("--extra", "dev", "--group", "dev", "--group", "test")
