"""Restoring a snapshot into a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, StorageError
from holdfast.snapshots.manifest import ManifestEntry, encode_rows
from holdfast.snapshots.restore import restore_snapshot
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import take_snapshot


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def snapshot_of(store: ObjectStore, **files: str) -> str:
    """Keyword `a__b="x"` is a file `a/b` with the content `x`; a value that starts with `->` is a link."""
    rows = []
    for name, content in files.items():
        path = name.replace("__", "/")
        if content.startswith("->"):
            rows.append(ManifestEntry(path, "l", content[2:], 0))
        else:
            rows.append(ManifestEntry(path, "f", store.put_bytes(content.encode()), len(content)))
    return store.put_bytes(encode_rows(rows))


def put(folder: Path, **files: str) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)


def test_a_snapshot_comes_back_as_it_was(project, tmp_path, there, write):
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


def test_restored_files_are_writable_copies(store, there):
    restore_snapshot(store, snapshot_of(store, a="x"), there)
    assert (there / "a").stat().st_nlink == 1
    assert os.stat(there / "a").st_mode & 0o200
    (there / "a").write_text("changed")
    restore_snapshot(store, snapshot_of(store, a="x"), there / "again")
    assert (there / "again" / "a").read_text() == "x"


def test_files_that_differ_are_listed_and_nothing_is_written(store, there):
    put(there, b="mine", c="c")
    with pytest.raises(ProjectError, match="`b`") as caught:
        restore_snapshot(store, snapshot_of(store, a="a", b="b", c="c"), there)
    assert "`c`" not in caught.value.message
    assert "--overwrite" in caught.value.hint
    assert {each.name: each.read_text() for each in there.iterdir()} == {"b": "mine", "c": "c"}


def test_overwrite_replaces_what_differs_and_spares_the_rest(store, there):
    put(there, b="mine", other="other", c="c")
    inode = (there / "c").stat().st_ino
    assert restore_snapshot(store, snapshot_of(store, b="b", c="c"), there, overwrite=True) == 2
    assert {each.name: each.read_text() for each in there.iterdir()} == {"b": "b", "c": "c", "other": "other"}
    assert (there / "c").stat().st_ino == inode


def test_a_second_restore_of_the_same_is_quiet(store, there):
    digest = snapshot_of(store, a="a", d__e="e", l="->a")
    assert restore_snapshot(store, digest, there) == restore_snapshot(store, digest, there) == 3


def test_nothing_is_written_through_a_link(store, there, tmp_path):
    outside = tmp_path / "outside"
    put(outside, b="untouched")
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


def test_a_folder_in_the_place_of_a_file_is_never_removed(store, there):
    (there / "a").mkdir(parents=True)
    (there / "a" / "x").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(ProjectError, match="`a`"):
            restore_snapshot(store, snapshot_of(store, a="a"), there, overwrite)
    assert (there / "a" / "x").read_text() == "x"


def test_a_file_in_the_place_of_a_folder_is_replaced_only_on_demand(store, there):
    put(there, a="file")
    digest = snapshot_of(store, a__b__c="c")
    with pytest.raises(ProjectError, match="`a`"):
        restore_snapshot(store, digest, there)
    restore_snapshot(store, digest, there, overwrite=True)
    assert (there / "a" / "b" / "c").read_text() == "c"


@pytest.mark.parametrize(("lost", "words"), [(True, "has no object"), (False, "damaged")], ids=["lost", "damaged"])
def test_a_lost_or_damaged_object_is_not_restored_and_nothing_is_written(store, there, lost, words):
    digest = snapshot_of(store, a="aaaa")
    path = store.path_of(store.put_bytes(b"aaaa"))
    path.chmod(0o644)
    path.unlink() if lost else path.write_bytes(b"bbbb")
    with pytest.raises(StorageError, match=words):
        restore_snapshot(store, digest, there)
    assert not there.exists() or (not lost and list(there.iterdir()) == [])


def test_a_hostile_manifest_restores_nothing_and_a_place_that_cannot_be_written_is_a_storage_error(store, there):
    content = store.put_bytes(b"x")
    digest = store.put_bytes(encode_rows([ManifestEntry("../escaped", "f", content, 1)]))
    with pytest.raises(StorageError, match="leads out"):
        restore_snapshot(store, digest, there)
    assert not (there.parent / "escaped").exists()
    there.write_text("")
    with pytest.raises(StorageError):
        restore_snapshot(store, snapshot_of(store, a="a"), there / "below")
