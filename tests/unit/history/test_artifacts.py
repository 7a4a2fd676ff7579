"""A run's files: found, copied completely, promoted and fetched again."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, StorageError, UnknownName, UsageError
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records.artifacts import (
    Copied,
    DownloadRequest,
    LinkLeftOut,
    artifacts,
    download,
    find_artifact,
)
from holdfast.workbench.records.promotion import download_asset, promote, read_link
from kit.projects import home, own_state

AROUND = Context(Path("/nowhere/home"), {}, Path("/nowhere"), Path("/nowhere"))


@pytest.fixture(autouse=True)
def own(tmp_path):
    own_state(tmp_path)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, "0" * 32, "iris", is_bare=False, home=home())


@pytest.fixture
def run_id(archive):
    run_id = archive.add(archive.completed)
    folder = archive.folders.path(run_id)
    files = {"outputs/model.pkl": "model", "outputs/a/b.txt": "b", "uploads/note": "hi", "driver_log": "log"}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return run_id


def tree(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_outputs_and_uploads_are_artifacts_and_logs_can_be_named(project, run_id):
    paths = [each.path for each in artifacts(project, run_id)]
    assert paths == ["outputs/model.pkl", "outputs/a/b.txt", "uploads/note"]
    names = ("outputs/model.pkl", "model.pkl", "./note", "driver_log")
    found = [find_artifact(project, run_id, text).path for text in names]
    assert found == ["outputs/model.pkl", "outputs/model.pkl", "uploads/note", "driver_log"]


@pytest.mark.parametrize("path", ["outputs/modl.pkl", "../submission.json", "submission.json", "/etc/passwd", ""])
def test_what_is_no_artifact_is_an_unknown_name(project, run_id, path):
    with pytest.raises(UnknownName) as caught:
        find_artifact(project, run_id, path)
    assert "outputs/model.pkl" in caught.value.hint


def test_a_download_copies_everything_under_its_path(project, run_id, tmp_path):
    target = tmp_path / "copy"
    events = list(download(project, DownloadRequest(run_id, target), AROUND))
    assert tree(target) == {"outputs/a/b.txt": "b", "outputs/model.pkl": "model", "uploads/note": "hi"}
    assert events[-1] == Copied("uploads/note", target / "uploads/note", 2, 3, 3)


def test_a_file_in_the_way_stops_the_download_before_anything_is_copied(project, run_id, tmp_path):
    target = tmp_path / "copy"
    (target / "uploads").mkdir(parents=True)
    (target / "uploads" / "note").write_text("mine")
    with pytest.raises(UsageError, match="--overwrite"):
        list(download(project, DownloadRequest(run_id, target), AROUND))
    assert tree(target) == {"uploads/note": "mine"}
    list(download(project, DownloadRequest(run_id, target, overwrite=True), AROUND))
    assert tree(target)["uploads/note"] == "hi"


def test_links_inside_the_run_are_copied_as_files_and_others_left_out(project, run_id, archive, tmp_path):
    outputs = archive.folders.path(run_id) / "outputs"
    (outputs / "latest").symlink_to("model.pkl")
    (outputs / "secret").symlink_to("/etc/hostname")
    (outputs / "nowhere").symlink_to("gone")
    events = list(download(project, DownloadRequest(run_id, tmp_path / "copy"), AROUND))
    assert [each.path for each in events if isinstance(each, LinkLeftOut)] == ["outputs/nowhere", "outputs/secret"]
    assert tree(tmp_path / "copy")["outputs/latest"] == "model"
    assert not (tmp_path / "copy" / "outputs" / "latest").is_symlink()


def test_files_of_the_project_have_their_paths_in_it(project, run_id, archive, tmp_path):
    folder = archive.folders.path(run_id)
    files = {
        "files/ckpt/a.pt": "a",
        "files/uploads/note": "other",
        "files/uploads/more": "more",
        "files/driver_log": "x",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "files/latest").symlink_to("outputs/model.pkl")
    (folder / "files/code").symlink_to("train.py")
    (folder / "files/newest").symlink_to("ckpt")
    events = list(download(project, DownloadRequest(run_id, tmp_path / "copy"), AROUND))
    left_out = [(each.path, each.to_folder) for each in events if isinstance(each, LinkLeftOut)]
    assert left_out == [("newest", True), ("code", False)]
    found = tree(tmp_path / "copy")
    assert {path: found[path] for path in found if not path.startswith("outputs/")} == {
        "ckpt/a.pt": "a",
        "driver_log": "x",
        "files/uploads/note": "other",
        "latest": "model",
        "uploads/more": "more",
        "uploads/note": "hi",
    }
    assert find_artifact(project, run_id, "files/ckpt/a.pt").path == "ckpt/a.pt"
    assert find_artifact(project, run_id, "files/uploads/note").file.read_text() == "other"


def test_a_full_disk_leaves_no_half_copied_file(project, run_id, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StorageError, match="Make room"):
        list(download(project, DownloadRequest(run_id, tmp_path / "copy", ("model.pkl",)), AROUND))
    assert tree(tmp_path / "copy") == {}


def test_a_file_outside_of_outputs_is_fetched_from_the_host(project, run_id, tmp_path, monkeypatch):
    asked = []

    @contextlib.contextmanager
    def fetching(project, run, context):
        def fetch(path, destination):
            asked.append((run, path, context))
            destination.write_text("far")

        yield fetch

    monkeypatch.setattr("holdfast.workbench.following.outputs.fetching", fetching)
    events = list(download(project, DownloadRequest(run_id, tmp_path / "copy", ("scratch.bin",)), AROUND))
    assert asked == [(run_id, "scratch.bin", AROUND)]
    assert tree(tmp_path / "copy") == {"scratch.bin": "far"}
    assert events == [Copied("scratch.bin", tmp_path / "copy" / "scratch.bin", 3, 1, 1)]


def test_a_promoted_artifact_comes_back_by_its_link(project, run_id, tmp_path):
    done = promote(project, run_id, "model.pkl", "model.pkl")
    assert done.file == tmp_path / "assets" / "model.pkl.link"
    assert json.loads(done.file.read_text()) == {
        "format": 1,
        "run_id": run_id,
        "artifact": "outputs/model.pkl",
        "sha256": "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4",
        "size": 5,
        "project_id": "0" * 32,
    }
    assert done.replaced is None
    copy = download_asset(project, done.file, tmp_path / "got")
    assert (copy, copy.read_text()) == (tmp_path / "got" / "model.pkl", "model")
    with pytest.raises(UsageError, match="--overwrite"):
        download_asset(project, done.file, tmp_path / "got")
    assert download_asset(project, done.file, tmp_path / "got", overwrite=True) == copy


def test_promoting_again_replaces_the_link_and_says_what_it_was(project, run_id):
    first = promote(project, run_id, "model.pkl", "best")
    second = promote(project, run_id, "uploads/note", "best")
    assert second.replaced == first.link
    assert read_link(second.file) == second.link
    assert promote(project, run_id, "uploads/note", "best").replaced is None


def test_content_that_changed_since_is_not_handed_out(project, run_id, archive, tmp_path):
    link = promote(project, run_id, "model.pkl", "best").file
    (archive.folders.path(run_id) / "outputs" / "model.pkl").write_text("other")
    with pytest.raises(StorageError, match="not what was promoted"):
        download_asset(project, link, tmp_path / "got")
    assert tree(tmp_path / "got") == {}


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "/x"])
def test_an_asset_needs_a_plain_name(project, run_id, name):
    with pytest.raises(UsageError, match="not a name for an asset"):
        promote(project, run_id, "model.pkl", name)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1, "run_id": 5}', "\xff"])
def test_a_file_that_is_no_link_is_named(tmp_path, content):
    (tmp_path / "x.link").write_text(content)
    with pytest.raises(ProjectError, match="is not a link that Holdfast wrote"):
        read_link(tmp_path / "x.link")
    (tmp_path / "x.link").write_text('{"format": 2}')
    with pytest.raises(ProjectError, match="Update Holdfast"):
        read_link(tmp_path / "x.link")


def test_a_missing_link_names_the_nearest(project, run_id, tmp_path):
    promote(project, run_id, "model.pkl", "model.pkl")
    with pytest.raises(UnknownName, match=r"Did you mean .*model\.pkl\.link"):
        read_link(tmp_path / "assets" / "modl.pkl.link")


def test_a_link_to_a_run_that_is_not_here_says_where_it_is(project, run_id, archive, tmp_path):
    link = promote(project, run_id, "model.pkl", "best").file
    archive.folders.path(run_id).rename(tmp_path / "elsewhere")
    with pytest.raises(UnknownName, match="in the copy of the project where it was run"):
        download_asset(project, link, tmp_path / "got")


def test_a_link_of_another_project_is_refused(project, run_id, tmp_path):
    link = promote(project, run_id, "model.pkl", "best").file
    other = Project(tmp_path, "1" * 32, "wine", is_bare=False, home=home())
    with pytest.raises(ProjectError, match="another project"):
        download_asset(other, link, tmp_path / "got")
