from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import ProjectError, StorageError, UnknownName, UsageError
from holdfast.project import templates
from holdfast.project.configuration import load_configuration
from holdfast.project.templates import create_project, template_names
from kit.projects import home, project_at

NAMES = [name for name, _ in template_names()]


def test_every_folder_of_templates_is_listed_with_a_description():
    here = Path(templates.__file__).parent
    assert sorted(each.name for each in here.iterdir() if each.is_dir() and each.name != "__pycache__") == NAMES
    assert all(description and "\n" not in description for _, description in template_names())


@pytest.mark.parametrize("template", NAMES)
def test_a_new_project_has_no_problems_and_a_managed_environment(tmp_path, template):
    made = create_project(tmp_path / "new", "My project", template, home())
    found = project_at(tmp_path / "new")
    assert found == made and found.name == "My project" and len(found.id) == 32
    configuration = load_configuration(found, "local", None)
    assert configuration.warnings == ()
    assert configuration.run.framework == "Python"
    managed = configuration.environment
    assert managed is not None and managed.python is None and managed.conda == ()
    files = sorted(each.relative_to(made.root).as_posix() for each in made.root.rglob("*") if each.is_file())
    assert files == [
        ".amlignore",
        "README.md",
        "aml_config/conda_dependencies.yml",
        "aml_config/local.compute",
        "aml_config/local.runconfig",
        "aml_config/project.json",
        "train.py",
    ]
    assert (made.root / "README.md").read_text().startswith("# My project\n")
    assert (made.root / configuration.run.argument_vector[0]).is_file()
    ast.parse((made.root / "train.py").read_text())


def test_the_digits_template_names_what_it_imports(tmp_path):
    made = create_project(tmp_path / "new", "digits", "digits", home())
    managed = load_configuration(made, None, None).environment
    assert managed is not None
    assert [each.text for each in managed.pip] == ["scikit-learn", "matplotlib"]


def test_the_blank_script_runs_with_nothing_but_holdfast(tmp_path):
    made = create_project(tmp_path / "new", "b", "blank", home())
    environment = {**os.environ, "PYTHONPATH": str(Path(holdfast.__file__).parents[1])}
    subprocess.run([sys.executable, "-S", "train.py"], cwd=made.root, env=environment, check=True, capture_output=True)
    assert (made.root / "outputs" / "hello.txt").read_text() == "hello\n"


def test_two_projects_of_one_name_have_different_ids(tmp_path):
    one = create_project(tmp_path / "a" / "mnist", "mnist", "blank", home())
    other = create_project(tmp_path / "b" / "mnist", "mnist", "blank", home())
    assert one.id != other.id


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path):
    (tmp_path / "here").mkdir()
    before = (tmp_path / "here").stat().st_ino
    create_project(tmp_path / "here", "here", "blank", home())
    assert (tmp_path / "here").stat().st_ino == before
    assert not [each for each in (tmp_path / "here").iterdir() if each.name.startswith(".holdfast")]


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ProjectError) as caught:
        create_project(tmp_path, "x", "blank", home())
    assert "is not empty" in caught.value.message and "--path" in caught.value.hint
    with pytest.raises(ProjectError):
        create_project(tmp_path / "mine.txt", "x", "blank", home())
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, exists):
    if exists:
        (tmp_path / "new").mkdir()
    rename, calls = Path.rename, []

    def fail_late(self: Path, target: Path) -> Path:
        calls.append(target)
        if Path(target).name in ("aml_config", "new"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_late)
    with pytest.raises(StorageError) as caught:
        create_project(tmp_path / "new", "x", "blank", home())
    assert "No space left on device" in caught.value.message and calls
    assert [each.name for each in tmp_path.rglob("*")] == (["new"] if exists else [])


def test_an_unknown_template_lists_the_valid_ones(tmp_path):
    with pytest.raises(UnknownName) as caught:
        create_project(tmp_path / "x", "x", "digit", home())
    assert caught.value.valid == NAMES and "`digits`" in caught.value.hint


@pytest.mark.parametrize("name", ["", " ", "a/b", "..", "a\nb", "a\\b"])
def test_an_impossible_name_is_refused(tmp_path, name):
    with pytest.raises(UsageError):
        create_project(tmp_path / "x", name, "blank", home())
    assert not (tmp_path / "x").exists()
