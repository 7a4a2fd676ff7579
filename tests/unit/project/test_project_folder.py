from __future__ import annotations

import errno
import json
import os
import re
import threading
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ProjectError, StorageError
from holdfast.project import folder
from holdfast.project.folder import ensure_identity, ensure_state_directory, find_project, new_id, run_prefix
from kit.projects import home, project_at

ID = "0123456789abcdef0123456789abcdef"


def test_the_nearest_folder_with_aml_config_is_the_project(tmp_path):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "inner" / "aml_config").mkdir(parents=True)
    (tmp_path / "inner" / "src" / "deep").mkdir(parents=True)
    project = project_at(tmp_path / "inner" / "src" / "deep")
    assert (project.root, project.name, project.is_bare, project.id) == (tmp_path / "inner", "inner", False, "")


def test_aml_config_further_up_wins_over_a_nearer_identity(tmp_path):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "a").mkdir()
    ensure_identity(folder.Project(tmp_path / "a", "", "a", is_bare=True, home=home()))
    assert project_at(tmp_path / "a").root == tmp_path


def test_a_bare_folder_is_found_again_from_below_once_it_has_an_identity(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    made = ensure_identity(project_at(tmp_path / "a"))
    again = project_at(tmp_path / "a" / "b")
    assert again == made
    assert again.is_bare and re.fullmatch("[0-9a-f]{32}", again.id)


def test_the_machines_own_folder_does_not_make_the_home_a_project(tmp_path):
    (tmp_path / ".holdfast" / "runs").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    assert project_at(tmp_path / "work").root == tmp_path / "work"


@pytest.mark.parametrize("root", ["/", "home"])
def test_neither_the_root_nor_the_home_becomes_a_project(tmp_path, root):
    start = Path("/") if root == "/" else tmp_path
    with pytest.raises(ProjectError) as caught:
        ensure_identity(project_at(start), user_home=tmp_path)
    assert "Make a folder" in caught.value.hint
    assert not (tmp_path / ".holdfast").exists()


def test_the_identity_that_is_shared_by_version_control_comes_first(tmp_path):
    (tmp_path / "aml_config").mkdir()
    ensure_identity(project_at(tmp_path))
    (tmp_path / "aml_config" / "project.json").write_text(json.dumps({"format": 1, "id": ID, "name": "Iris"}))
    project = project_at(tmp_path)
    assert (project.id, project.name) == (ID, "Iris")
    assert ensure_identity(project) == project


@pytest.mark.parametrize(
    "content",
    ['{"Id": "NewExperiment", "Scope": "/x"}', '{"id": "../../etc"}', '{"id": 5, "name": 7}', "[]", "\ufeff{}"],
)
def test_a_foreign_project_file_identifies_nothing(tmp_path, content):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "project.json").write_text(content, encoding="utf-8")
    assert project_at(tmp_path).id == ""
    assert ensure_identity(project_at(tmp_path)).id == project_at(tmp_path).id != ""


def test_a_damaged_project_file_is_named(tmp_path):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "project.json").write_text("<<<<<<< HEAD")
    with pytest.raises(ProjectError) as caught:
        project_at(tmp_path)
    assert "aml_config/project.json" in caught.value.message and caught.value.hint


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProjectError):
        project_at(tmp_path / "gone")


@pytest.mark.parametrize("has_links", [True, False])
def test_many_at_once_end_with_the_same_id(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", _refuse)
    project = project_at(tmp_path)
    together = threading.Barrier(12)
    found: list[str] = []

    def make() -> None:
        together.wait()
        found.append(ensure_identity(project).id)

    threads = [threading.Thread(target=make) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 12 and len(set(found)) == 1
    assert sorted(each.name for each in (tmp_path / ".holdfast").iterdir()) == [
        ".gitignore",
        "origin.json",
        "project.json",
    ]


def test_nothing_of_the_state_is_committed_by_accident(tmp_path):
    directory = ensure_state_directory(project_at(tmp_path))
    assert directory == tmp_path / ".holdfast"
    assert (directory / ".gitignore").read_text() == "*\n"
    (directory / ".gitignore").write_text("mine\n")
    ensure_state_directory(project_at(tmp_path))
    assert (directory / ".gitignore").read_text() == "mine\n"


def test_a_read_only_folder_is_a_storage_error_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", _refuse)
    with pytest.raises(StorageError) as caught:
        ensure_identity(project_at(tmp_path))
    assert "Read-only file system" in caught.value.message and "writable" in caught.value.hint


def test_a_file_in_the_place_of_the_state_is_named(tmp_path):
    (tmp_path / ".holdfast").write_text("")
    with pytest.raises(ProjectError, match="is not a folder"):
        ensure_identity(project_at(tmp_path))


def _refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        *(("myIris", "myIris"), ("my iris (2)", "my-iris-2"), ("Übung", "Ubung")),
        *(("日本", "project"), ("--x", "x"), ("", "project")),
    ],
)
def test_a_run_id_begins_with_what_is_legal_of_the_name(name, prefix):
    assert run_prefix(name) == prefix


@settings(max_examples=40)
@given(st.text(max_size=100))
def test_every_prefix_is_legal(name):
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", run_prefix(name))


def test_ids_are_random_uuids():
    made = {new_id() for _ in range(100)}
    assert len(made) == 100
    assert all(uuid.UUID(each).version == 4 and uuid.UUID(each).variant == uuid.RFC_4122 for each in made)


def test_the_top_of_a_repository_is_the_project_whatever_ran_before(tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    ensure_identity(project_at(inside))
    assert project_at(inside).root == inside
    (tmp_path / ".git").mkdir()
    assert project_at(inside).root == tmp_path
    (tmp_path / "a" / "aml_config").mkdir()
    assert project_at(inside).root == tmp_path / "a"


def test_a_repository_of_dot_files_is_no_project(tmp_path):
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / ".git").mkdir()
    assert find_project(inside, home(), tmp_path).root == inside
