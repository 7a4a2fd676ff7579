"""Taking a snapshot: what is read, what is remembered, what is warned of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pytest

from holdfast.snapshots import cache as cache_module
from holdfast.snapshots import warnings
from holdfast.snapshots.manifest import ManifestEntry
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import open_regular, take_snapshot


class Opened:
    """An opener that records what was read."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str) -> BinaryIO:
        self.paths.append(os.path.basename(path))
        return open_regular(path)


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, the cache believes that it began long after any file changed."""
    with monkeypatch.context() as patch:
        patch.setattr(cache_module.CacheWriter, "may_enter", lambda _self, _stat: True)
        yield


def test_files_links_and_executables_are_in_the_manifest(project, state, take, write, entries):
    empty = take()
    assert (empty.files, empty.bytes) == (0, 0)
    write("train.py", "sub/a b")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("train.py")
    (project / "empty").mkdir()
    snapshot = take()
    found = entries(snapshot)
    digest = hashlib.sha256(b"train.py").hexdigest()
    assert found["train.py"] == ManifestEntry("train.py", "f", digest, 8)
    assert found["run.sh"].kind == "x"
    assert found["link"] == ManifestEntry("link", "l", "train.py", 0)
    assert sorted(found) == ["link", "run.sh", "sub/a b", "train.py"]
    assert (snapshot.files, snapshot.bytes, snapshot.new_objects, snapshot.warnings) == (4, 8 + 7 + 10, 3, ())
    assert ObjectStore(state / "objects").read(digest) == b"train.py"


def test_odd_names_are_kept(project, take, write, entries):
    names = ["a b", "quote'\"", "new\nline", "tab\t", "é", os.fsdecode(b"caf\xe9"), "-rf", "\\", "*"]
    write(*names[:5], *names[6:])
    (project / names[5]).write_text("latin 1")
    assert sorted(entries(take())) == sorted(names)


def test_an_unchanged_project_is_not_read_again_and_then_only_what_changed(tree, state, write, monkeypatch, entries):
    write("a", "b", "c", "d/e")
    (tree / "link").symlink_to("/")
    opened = Opened()
    with later(monkeypatch):
        first = take_snapshot(tree, state, opener=opened)
        written = (state / "snapshot-cache.json").stat()
        again = take_snapshot(tree, state, opener=opened)
        assert sorted(opened.paths) == ["a", "b", "c", "e"]
        assert (again.digest, again.files, again.bytes) == (first.digest, first.files, first.bytes)
        assert again.warnings == first.warnings
        assert len(again.warnings) == 1
        assert again.new_objects == 0
        assert (state / "snapshot-cache.json").stat().st_ino == written.st_ino

        opened.paths.clear()
        (tree / "a").write_text("A")
        (tree / "b").unlink()
        (tree / "c").chmod(0o755)
        (tree / "f").write_text("f")
        snapshot = take_snapshot(tree, state, opener=opened)
    assert sorted(opened.paths) == ["a", "c", "f"]
    found = entries(snapshot)
    assert sorted(found) == ["a", "c", "d/e", "f", "link"]
    assert found["a"].detail == hashlib.sha256(b"A").hexdigest()
    assert found["c"].kind == "x"
    assert snapshot.new_objects == 2
    assert snapshot.digest == take_snapshot(tree, state.parent.parent / "other", None).digest


def test_a_changed_rule_is_noticed_although_no_file_changed(repository, git, take, write, monkeypatch, entries):
    write("a", "b.csv")
    git(repository, "add", "-A")
    with later(monkeypatch):
        assert take().files == 2
        assert take().files == 2
        (repository / ".amlignore").write_text("*.csv\n.amlignore\n")
        assert sorted(entries(take())) == ["a"]


def test_a_file_touched_while_the_snapshot_is_taken_is_not_trusted_later(project, state, take, write):
    write("old", "future")
    os.utime(project / "old", ns=(10**18, 10**18))
    os.utime(project / "future", ns=(4 * 10**18, 4 * 10**18))
    take()
    paths = json.loads((state / "snapshot-cache.json").read_bytes())["known"][0]
    assert "future" not in paths


def test_an_edit_of_the_same_size_in_the_same_instant_is_seen(project, take, entries):
    file = project / "a"
    for number in range(10):
        file.write_text(f"{number:02}")
        digest = hashlib.sha256(f"{number:02}".encode()).hexdigest()
        assert entries(take())["a"].detail == digest


def test_a_damaged_cache_starts_afresh_and_one_with_wrong_values_does_no_harm(state, take, write, monkeypatch):
    write("a")
    file = state / "snapshot-cache.json"
    with later(monkeypatch):
        first = take()
        good = file.read_bytes()
        assert take().digest == first.digest
        for damaged in (b"", b"{", b"null", b"[]", b'{"format": 99}', b'{"format": 1}', b"\xff", *spoiled(good)):
            file.write_bytes(damaged)
            assert take().digest == first.digest, damaged


def spoiled(cache: bytes) -> Iterator[bytes]:
    """With another value in each column."""
    yield b'{"format": 1, "known": [[]]}'
    others: list[object] = [None, "x", 0, [], "\0"]
    for column in range(7):
        for value in others:
            document = json.loads(cache)
            document["known"][column] = [value]
            yield json.dumps(document).encode()


def test_a_lost_object_is_stored_again(project, state, take, write, monkeypatch):
    write("a", "b")
    store = ObjectStore(state / "objects")
    with later(monkeypatch):
        first = take()
        for digest in (hashlib.sha256(b"a").hexdigest(), first.digest):
            store.path_of(digest).unlink()
            assert take().digest == first.digest
            assert store.has(digest)


def test_progress_is_reported_and_ends_with_everything(project, state, write):
    write(*(f"{number:03}" for number in range(70)))
    heard: list[tuple[int, int]] = []
    take_snapshot(project, state, lambda files, size: heard.append((files, size)))
    assert heard[-1] == (70, 210)
    assert heard == sorted(heard)
    assert len(heard) > 1


def test_large_files_and_folders_are_named_with_the_line_that_leaves_them_out(project, take, write, monkeypatch):
    monkeypatch.setattr(warnings, "LARGE", 1000)
    sizes = {"big file": 2000, "data/one": 1500, "many/a": 600, "many/b": 600, "small/a": 900}
    for path, size in sizes.items():
        write(path)
        (project / path).write_bytes(b"x" * size)
    found = {each.path: each for each in take().warnings}
    assert sorted(found) == ["big file", "data/one", "many"]
    assert found["big file"].remedy.endswith(": /big\\ file")
    assert found["many"].remedy.endswith(": /many/")
    assert "has 1.2 kB in 2 files and" in found["many"].message
    write("many/c")
    assert sorted(each.path for each in take().warnings) == ["big file", "data/one", "many"]


@pytest.mark.parametrize("limits", [(1, 100), (10**9, 3)], ids=["bytes", "files"])
def test_a_folder_that_is_better_sent_as_data_is_named_with_the_option(project, take, write, monkeypatch, limits):
    monkeypatch.setattr(warnings, "BETTER_AS_DATA", warnings.Amount(*limits))
    monkeypatch.setattr(warnings, "LARGE", 10)
    write("train.py", *(f"my data/{number}" for number in range(4)))
    (warning,) = take().warnings
    lines = [each.rpartition(": ")[2] for each in warning.remedy.splitlines()]
    assert lines == ["/my\\ data/", "--data 'my data:my data'"]


def test_lfs_pointers_are_named_also_when_they_come_from_the_cache(project, take, monkeypatch):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    for number in range(5):
        (project / f"model{number}.bin").write_text(pointer)
    (project / "notes").write_text("about version https://git-lfs.github.com/spec/v1")
    with later(monkeypatch):
        (warning,) = take().warnings
        (project / "new").write_text("x")
        assert take().warnings == (warning,)
    assert warning.remedy == "git lfs pull"
    assert warning.message.startswith("`model0.bin`, `model1.bin`, `model2.bin` and 2 more are Git LFS pointers")


@pytest.mark.parametrize(
    ("link", "target", "warned"),
    [
        ("link", "/etc/hostname", True),
        ("link", "../other", True),
        ("sub/link", "../../other", True),
        ("sub/link", "../train.py", False),
        ("link", "sub/../../x", True),
        ("link", "..x", False),
        ("link", "missing", False),
    ],
)
def test_a_link_that_leaves_the_project_is_kept_and_named(project, take, link, target, warned, entries):
    (project / "sub").mkdir()
    (project / link).symlink_to(target)
    snapshot = take()
    assert entries(snapshot)[link].detail == target
    assert [each.path for each in snapshot.warnings] == ([link] if warned else [])


def test_a_folder_that_became_a_link_ships_as_the_link(repository, git, take, write, tmp_path, entries):
    write("a/x", "a/y", "a-b", "b/a/x")
    git(repository, "add", "-A")
    (repository / "a").rename(tmp_path / "moved")
    (repository / "a").symlink_to(tmp_path / "moved")
    assert sorted(entries(take())) == ["a", "a-b", "b/a/x"]


def test_a_tracked_file_that_was_deleted_is_no_reason_to_complain(repository, git, take, write, monkeypatch):
    write("a", "b", "c/d")
    git(repository, "add", "-A")
    (repository / "b").unlink()
    (repository / "c" / "d").unlink()
    (repository / "c").rmdir()
    (repository / "c").write_text("now a file")
    with later(monkeypatch):
        for _ in range(2):
            snapshot = take()
            assert (snapshot.files, snapshot.warnings) == (2, ())


def test_a_tracked_file_that_became_a_pipe_is_named(repository, git, take, write):
    write("a", "b")
    git(repository, "add", "-A")
    (repository / "b").unlink()
    os.mkfifo(repository / "b")
    snapshot = take()
    assert [each.path for each in snapshot.warnings] == ["b"]
    assert snapshot.files == 1
