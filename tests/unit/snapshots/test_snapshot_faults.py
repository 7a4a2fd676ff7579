"""Files that cannot be read, change under the reader, or cannot be stored."""

from __future__ import annotations

import errno
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from holdfast.errors import StorageError
from holdfast.snapshots import store as store_module
from holdfast.snapshots.cache import writing_cache
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import open_regular, take_snapshot


@pytest.fixture
def powerless() -> Iterator[Path]:
    """A folder of a user who cannot read everything; the test runs as that user until it ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        if os.geteuid() != 0:
            yield folder
            return
        os.chown(folder, 65534, 65534)
        os.setresgid(65534, 65534, 0)  # not the effective one alone: a shell would give that up
        os.setresuid(65534, 65534, 0)
        try:
            yield folder
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)


@pytest.mark.parametrize("way", ["walk", "git", "folder of a repository"])
def test_unreadable_files_and_folders_are_left_out_and_named(powerless, git, way):
    project = powerless / "sub" if way == "folder of a repository" else powerless
    if way != "walk":
        git(powerless, "init", "-q")
    (project / "locked").mkdir(parents=True)
    for name in ("a", "secret", "locked/x"):
        (project / name).write_text(name)
    (project / "secret").chmod(0)
    (project / "locked").chmod(0)
    try:
        snapshot = take_snapshot(project, project / ".holdfast", None)
    finally:
        (project / "locked").chmod(0o700)
    assert snapshot.files == 1
    assert {each.path: each.remedy for each in snapshot.warnings} == {
        "locked": "chmod u+rx on it, or write `/locked/` into .amlignore.",
        "secret": "Make it readable (chmod u+r), or write `/secret` into .amlignore.",
    }


class Restless(io.FileIO):
    """A file that grows as soon as it is read."""

    calm = False

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size) or b""
        if not self.calm:
            self.calm = True
            with open(str(self.name), "ab") as other:
                other.write(b"+")
        return data


@pytest.mark.parametrize(("times", "content", "warned"), [(1, b"a+", False), (2, b"a++", False), (9, b"a+++", True)])
def test_a_file_that_changes_while_it_is_read_is_tried_three_times(
    project, state, write, times, content, warned, entries
):
    write("a")
    opened = []

    def open_restless(path: str) -> BinaryIO:
        opened.append(path)
        return Restless(path) if len(opened) <= times else open_regular(path)

    snapshot = take_snapshot(project, state, opener=open_restless)
    assert len(opened) == 3 if warned else times + 1
    assert ObjectStore(state / "objects").read(entries(snapshot)["a"].detail) == content
    assert [each.path for each in snapshot.warnings] == (["a"] if warned else [])
    assert "a" not in json.loads((state / "snapshot-cache.json").read_bytes())["known"][0]


def test_a_disk_that_fails_under_a_file_leaves_that_file_out(project, state, write, entries):
    def failing(path: str) -> BinaryIO:
        if path.endswith("/bad"):
            raise OSError(errno.EIO, "Input/output error")
        return open_regular(path)

    write("bad", "good")
    snapshot = take_snapshot(project, state, opener=failing)
    assert list(entries(snapshot)) == ["good"]
    (warning,) = snapshot.warnings
    assert "Input/output error" in warning.message


def test_a_full_disk_ends_the_snapshot_and_leaves_no_part_of_it(state, take, write, monkeypatch):
    def full(descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write("a")
    monkeypatch.setattr(store_module, "_write", full)
    with pytest.raises(StorageError, match="no room left"):
        take()
    assert [each for each in state.rglob("*") if each.is_file()] == []


def test_a_state_folder_that_cannot_be_made_is_a_storage_error(project, write):
    write("a")
    with pytest.raises(StorageError, match="cannot be written"):
        take_snapshot(project, project / "a" / "state", None)


@pytest.mark.parametrize("system", ["linux", "win32"])
def test_an_error_of_the_one_who_writes_the_cache_passes_as_it_is(tmp_path, monkeypatch, system):
    monkeypatch.setattr("holdfast.snapshots.cache.sys.platform", system)
    with pytest.raises(PermissionError, match="not ours"), writing_cache(tmp_path):
        raise PermissionError("not ours")
    assert list(tmp_path.iterdir()) == []
