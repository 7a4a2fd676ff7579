"""Restoring a snapshot into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, StorageError
from holdfast.snapshots.manifest import Entry, Manifest, encode
from holdfast.snapshots.restore import restore_snapshot
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import take_snapshot


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "state" / "objects")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def snapshot_of(store: ObjectStore, **files: str) -> str:
    """Keyword `a__b="x"` is a file `a/b` with the content `x`; a value that starts with `->` is a link."""
    rows = []
    for name, content in files.items():
        path = name.replace("__", "/")
        if content.startswith("->"):
            rows.append(Entry(path, "l", content[2:], 0))
        else:
            rows.append(Entry(path, "f", store.put_bytes(content.encode()), len(content)))
    return store.put_bytes(encode(Manifest(tuple(rows))))


def test_a_snapshot_comes_back_as_it_was(
    project: Path, tmp_path: Path, there: Path, write: Callable[..., None]
) -> None:
    names = ["a b", "sub/new\nline", "sub/deep/er", "-x"]
    write(*names)
    (project / os.fsdecode(b"\xff")).write_bytes(b"\xff\0")
    (project / "run.sh").write_text("x")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("../elsewhere")
    state = tmp_path / "state"
    snapshot = take_snapshot(project, state, None)
    assert restore_snapshot(ObjectStore(state / "objects"), snapshot.digest, there) == 7
    assert take_snapshot(there, tmp_path / "other", None).digest == snapshot.digest
    assert os.readlink(there / "link") == "../elsewhere"


def test_restored_files_are_writable_copies(store: ObjectStore, there: Path) -> None:
    restore_snapshot(store, snapshot_of(store, a="x"), there)
    assert (there / "a").stat().st_nlink == 1
    assert os.stat(there / "a").st_mode & 0o200
    (there / "a").write_text("changed")
    restore_snapshot(store, snapshot_of(store, a="x"), there / "again")
    assert (there / "again" / "a").read_text() == "x"


def test_files_that_differ_are_listed_and_nothing_is_written(store: ObjectStore, there: Path) -> None:
    there.mkdir()
    (there / "b").write_text("mine")
    (there / "c").write_text("c")
    digest = snapshot_of(store, a="a", b="b", c="c")
    with pytest.raises(ProjectError, match="`b`") as caught:
        restore_snapshot(store, digest, there)
    assert "`c`" not in caught.value.message
    assert "--overwrite" in caught.value.hint
    assert sorted(each.name for each in there.iterdir()) == ["b", "c"]
    assert (there / "b").read_text() == "mine"


def test_overwrite_replaces_what_differs_and_spares_the_rest(store: ObjectStore, there: Path) -> None:
    there.mkdir()
    (there / "b").write_text("mine")
    (there / "other").write_text("other")
    same = there / "c"
    same.write_text("c")
    inode = same.stat().st_ino
    assert restore_snapshot(store, snapshot_of(store, b="b", c="c"), there, overwrite=True) == 2
    assert (there / "b").read_text() == "b"
    assert same.stat().st_ino == inode
    assert (there / "other").read_text() == "other"


def test_a_second_restore_of_the_same_is_quiet(store: ObjectStore, there: Path) -> None:
    digest = snapshot_of(store, a="a", d__e="e", l="->a")
    assert restore_snapshot(store, digest, there) == restore_snapshot(store, digest, there) == 3


def test_nothing_is_written_through_a_link(store: ObjectStore, there: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b").write_text("untouched")
    there.mkdir()
    (there / "a").symlink_to(outside)
    (there / "file").symlink_to(outside / "b")
    digest = snapshot_of(store, a__b="b", a__c="c", file="f")
    with pytest.raises(ProjectError, match="2 path"):
        restore_snapshot(store, digest, there)
    restore_snapshot(store, digest, there, overwrite=True)
    assert [(each.name, each.read_text()) for each in outside.iterdir()] == [("b", "untouched")]
    assert (there / "a" / "b").read_text() == "b"
    assert not (there / "a").is_symlink()
    assert (there / "file").read_text() == "f"


def test_a_folder_in_the_place_of_a_file_is_never_removed(store: ObjectStore, there: Path) -> None:
    (there / "a").mkdir(parents=True)
    (there / "a" / "x").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(ProjectError, match="`a`"):
            restore_snapshot(store, snapshot_of(store, a="a"), there, overwrite)
    assert (there / "a" / "x").read_text() == "x"


def test_a_file_in_the_place_of_a_folder_is_replaced_only_on_demand(store: ObjectStore, there: Path) -> None:
    there.mkdir()
    (there / "a").write_text("file")
    digest = snapshot_of(store, a__b__c="c")
    with pytest.raises(ProjectError, match="`a`"):
        restore_snapshot(store, digest, there)
    restore_snapshot(store, digest, there, overwrite=True)
    assert (there / "a" / "b" / "c").read_text() == "c"


def test_a_missing_object_is_found_out_before_anything_is_written(store: ObjectStore, there: Path) -> None:
    digest = snapshot_of(store, a="a", b="b")
    store.path_of(store.put_bytes(b"b")).unlink()
    with pytest.raises(StorageError, match="has no object"):
        restore_snapshot(store, digest, there)
    assert not there.exists()


def test_a_damaged_object_is_not_restored(store: ObjectStore, there: Path) -> None:
    digest = snapshot_of(store, a="aaaa")
    path = store.path_of(store.put_bytes(b"aaaa"))
    path.chmod(0o644)
    path.write_bytes(b"bbbb")
    with pytest.raises(StorageError, match="damaged"):
        restore_snapshot(store, digest, there)
    assert list(there.iterdir()) == []


def test_a_hostile_manifest_restores_nothing(store: ObjectStore, there: Path) -> None:
    content = store.put_bytes(b"x")
    digest = store.put_bytes(encode(Manifest((Entry("../escaped", "f", content, 1),))))
    with pytest.raises(StorageError, match="leads out"):
        restore_snapshot(store, digest, there)
    assert not (there.parent / "escaped").exists()


def test_a_destination_that_cannot_be_written_is_a_storage_error(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        restore_snapshot(store, snapshot_of(store, a="a"), tmp_path / "file" / "there")
