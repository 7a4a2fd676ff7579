"""`-e .`, `./lib[extra]`, `setup.py` and `setup.cfg`: what a project depends on, read and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.setup_files import read_wishes

SETUP = """import os
from setuptools import setup, find_packages
raise SystemExit("it was run")
BASE = ["six", "attrs>=21"]
setup(name="tool", packages=find_packages(), install_requires=BASE + ["toml"],
      extras_require={"gym": ["gymnasium"], "one": "iniconfig"}, python_requires=">=3.8")
"""


def read(root: Path, written: str) -> EnvironmentSpec:
    spec, problems = read_environment_spec(root, written)
    assert spec is not None, problems
    return spec


def texts(spec: EnvironmentSpec) -> list[str]:
    return [each.text for each in spec.pip]


def test_a_folder_in_a_requirements_file_means_what_it_depends_on(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "setup.py").write_text(SETUP)
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname='x'\ndependencies=['six', 'rich']\n[project.optional-dependencies]\na=['wheel']\n"
    )
    (tmp_path / "requirements.txt").write_text("six\n-e .[a]\n./lib[gym]\nx @ .\n")
    spec = read(tmp_path, "requirements.txt")
    assert texts(spec) == ["six", "rich", "wheel", "attrs>=21", "toml", "gymnasium"]
    assert [each.folder for each in spec.projects] == ["", "lib"]
    assert spec.python == ">=3.8"


def test_projects_that_need_each_other_are_read_once(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        text = f"[project]\nname='{name}'\ndependencies=['{other}', 'six']\n"
        text += f"[tool.uv.sources]\n{other} = {{ path = '../{other}' }}\n"
        (tmp_path / name / "pyproject.toml").write_text(text)
    (tmp_path / "requirements.txt").write_text("-e a\n")
    spec = read(tmp_path, "requirements.txt")
    assert texts(spec) == ["six"]
    assert sorted(each.folder for each in spec.projects) == ["a", "b"]


def test_a_folder_that_is_no_project_is_an_error_with_its_line(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "requirements.txt").write_text("six\n-e lib\n")
    spec, problems = read_environment_spec(tmp_path, "requirements.txt")
    assert spec is None
    assert (problems[0].file, problems[0].line) == ("requirements.txt", 2)


def test_a_file_in_which_every_package_has_a_hash_is_whole(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname='x'\ndependencies=['six', 'rich']\n")
    (tmp_path / "requirements.txt").write_text("-e .\nsix==1.16.0 --hash=sha256:" + "0" * 64 + "\n")
    spec = read(tmp_path, "requirements.txt")
    assert spec.locked and len(spec.pip) == 1


def test_a_repository_installed_editable_is_a_package(tmp_path):
    lines = "-e git+https://h.example/x.git@v1#egg=mine&subdirectory=py\n-e git+https://h.example/y.git\n"
    (tmp_path / "requirements.txt").write_text(lines)
    assert texts(read(tmp_path, "requirements.txt")) == [
        "mine @ git+https://h.example/x.git@v1#subdirectory=py",
        "git+https://h.example/y.git",
    ]


def test_a_setup_py_is_read_without_running_it(tmp_path):
    (tmp_path / "setup.py").write_text(SETUP)
    assert texts(read(tmp_path, "setup.py[one]")) == ["six", "attrs>=21", "toml", "iniconfig"]


def test_a_setup_cfg_says_it_too(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        "[metadata]\nname = x\n[options]\npython_requires = >=3.9\ninstall_requires =\n  six\n  # no\n  attrs>1\n"
        "[options.extras_require]\ndev =\n  pytest\n"
    )
    (tmp_path / "setup.py").write_text("from setuptools import setup\nsetup()\n")
    spec = read(tmp_path, "setup.py[dev]")
    assert (texts(spec), spec.python) == (["six", "attrs>1", "pytest"], ">=3.9")
    (tmp_path / "needs.txt").write_text("toml\n")
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires = file: needs.txt\n")
    assert texts(read(tmp_path, "setup.cfg")) == ["toml"]


@pytest.mark.parametrize(
    "text",
    [
        "setup(install_requires=open('r.txt').read().split())",
        "REQ = ['six']\nREQ.append('x')\nsetup(install_requires=REQ)",
        "REQ = ['six']\nREQ = ['x']\nsetup(install_requires=REQ)",
        "REQ = ['six']\nREQ += ['x']\nsetup(install_requires=REQ)",
        "REQ = ['six']\nREQ[0] = 'x'\nsetup(install_requires=REQ)",
        "A = B\nB = A\nsetup(install_requires=A)",
        "\n".join(
            ["A0 = ['x', 'y']", *(f"A{n} = A{n - 1} + A{n - 1}" for n in range(1, 200)), "setup(install_requires=A199)"]
        ),
        "setup(**settings)",
        "print 'Python 2'",
        "x = " + "-" * 3000 + "1",
        "main()",
    ],
)
def test_what_only_a_program_can_say_is_left_to_the_build(tmp_path, text):
    (tmp_path / "setup.py").write_text(text)
    assert not read_wishes(tmp_path).is_whole
    (tmp_path / "r.txt").write_text("six\n")
    spec = read(tmp_path, "setup.py[a]")
    assert texts(spec) == ["${HOLDFAST_FILES}[a]"]
    assert spec.files == ("r.txt", "setup.py")


def test_a_pyproject_that_leaves_it_to_setuptools_names_its_files(tmp_path):
    dynamic = "[project]\nname='x'\ndynamic=['dependencies']\n"
    (tmp_path / "pyproject.toml").write_text(
        f"{dynamic}[tool.setuptools.dynamic]\ndependencies = {{ file = ['needs.txt'] }}\n"
    )
    (tmp_path / "needs.txt").write_text("six\n")
    assert texts(read(tmp_path, "pyproject.toml")) == ["six"]
    (tmp_path / "pyproject.toml").write_text(f"{dynamic}[dependency-groups]\nt=['pytest']\n")
    assert texts(read(tmp_path, "pyproject.toml[a,group:t]")) == ["${HOLDFAST_FILES}[a]", "pytest"]
