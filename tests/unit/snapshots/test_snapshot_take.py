"""Taking a snapshot: what is read, what is remembered, what is warned of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from holdfast.snapshots import cache as cache_module
from holdfast.snapshots import contents
from holdfast.snapshots.manifest import Entry, decode
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import Snapshot, open_regular, take_snapshot, take_with

Write = Callable[..., None]
Git = Callable[..., str]


class Opened:
    """An opener that remembers what was read."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str) -> BinaryIO:
        self.paths.append(os.path.basename(path))
        return open_regular(path)


def entries(state: Path, snapshot: Snapshot) -> dict[str, Entry]:
    return {each.path: each for each in decode(ObjectStore(state / "objects").read(snapshot.digest)).entries}


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, the cache believes that it is begun long after any file was touched."""
    with monkeypatch.context() as patch:
        patch.setattr(cache_module.CacheWriter, "may_enter", lambda _self, _stat: True)
        yield


def test_files_links_and_executables_are_in_the_manifest(project: Path, state: Path, take: Any, write: Write) -> None:
    write("train.py", "sub/a b")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("train.py")
    (project / "empty").mkdir()
    snapshot = take()
    found = entries(state, snapshot)
    digest = hashlib.sha256(b"train.py").hexdigest()
    assert found["train.py"] == Entry("train.py", "f", digest, 8)
    assert found["run.sh"].kind == "x"
    assert found["link"] == Entry("link", "l", "train.py", 0)
    assert sorted(found) == ["link", "run.sh", "sub/a b", "train.py"]
    assert (snapshot.files, snapshot.bytes, snapshot.new_objects, snapshot.warnings) == (4, 8 + 7 + 10, 3, ())
    assert ObjectStore(state / "objects").read(digest) == b"train.py"


def test_odd_names_are_kept(project: Path, state: Path, take: Any, write: Write) -> None:
    names = ["a b", "quote'\"", "new\nline", "tab\t", "é", os.fsdecode(b"caf\xe9"), "-rf", "\\", "*"]
    write(*names[:5], *names[6:])
    (project / names[5]).write_text("latin 1")
    assert sorted(entries(state, take())) == sorted(names)


def test_an_empty_project_has_a_snapshot(take: Any) -> None:
    snapshot = take()
    assert (snapshot.files, snapshot.bytes) == (0, 0)


@pytest.mark.parametrize("in_git", [True, False])
def test_an_unchanged_project_is_not_read_again(
    project: Path, state: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch, in_git: bool
) -> None:
    if in_git:
        git(project, "init", "-q")
    write("a", "b/c", "b/d")
    (project / "link").symlink_to("/")
    opened = Opened()
    with later(monkeypatch):
        first = take_with(opened, project, state, None)
        written = (state / "snapshot-cache.json").stat()
        again = take_with(opened, project, state, None)
    assert sorted(opened.paths) == ["a", "c", "d"]
    assert (again.digest, again.files, again.bytes) == (first.digest, first.files, first.bytes)
    assert again.warnings == first.warnings
    assert len(again.warnings) == 1
    assert again.new_objects == 0
    assert (state / "snapshot-cache.json").stat().st_ino == written.st_ino


@pytest.mark.parametrize("in_git", [True, False])
def test_only_what_changed_is_read(
    project: Path, state: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch, in_git: bool
) -> None:
    if in_git:
        git(project, "init", "-q")
    write("a", "b", "c", "d")
    opened = Opened()
    with later(monkeypatch):
        take_with(opened, project, state, None)
        opened.paths.clear()
        (project / "a").write_text("A")
        (project / "b").unlink()
        (project / "c").chmod(0o755)
        (project / "e").write_text("e")
        snapshot = take_with(opened, project, state, None)
    assert sorted(opened.paths) == ["a", "c", "e"]
    found = entries(state, snapshot)
    assert sorted(found) == ["a", "c", "d", "e"]
    assert found["a"].detail == hashlib.sha256(b"A").hexdigest()
    assert found["c"].kind == "x"
    assert snapshot.new_objects == 2
    assert snapshot.digest == take_snapshot(project, state.parent.parent / "other", None).digest


def test_a_changed_rule_is_noticed_although_no_file_changed(
    project: Path, state: Path, git: Git, take: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("a", "b.csv")
    git(project, "add", "-A")
    with later(monkeypatch):
        assert take().files == 2
        assert take().files == 2
        (project / ".amlignore").write_text("*.csv\n.amlignore\n")
        assert sorted(entries(state, take())) == ["a"]


def test_a_file_touched_while_the_snapshot_is_taken_is_not_trusted_later(
    project: Path, state: Path, take: Any, write: Write
) -> None:
    write("old", "future")
    os.utime(project / "old", ns=(10**18, 10**18))
    os.utime(project / "future", ns=(4 * 10**18, 4 * 10**18))
    take()
    paths = json.loads((state / "snapshot-cache.json").read_bytes())["known"][0]
    assert "future" not in paths


def test_an_edit_of_the_same_size_in_the_same_instant_is_seen(project: Path, state: Path, take: Any) -> None:
    file = project / "a"
    for number in range(30):
        file.write_text(f"{number:02}")
        digest = hashlib.sha256(f"{number:02}".encode()).hexdigest()
        assert entries(state, take())["a"].detail == digest


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"format": 99}',
        b'{"format": 1}',
        b"\xff",
        b'{"format": 1, "known": [[]]}',
    ],
)
def test_a_damaged_cache_starts_afresh(state: Path, take: Any, write: Write, damage: bytes) -> None:
    write("a", "b")
    first = take()
    (state / "snapshot-cache.json").write_bytes(damage)
    assert take().digest == first.digest


def test_a_cache_with_wrong_values_does_no_harm(
    state: Path, take: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a")
    file = state / "snapshot-cache.json"
    values: list[Any] = [None, "x", 0, [], "\0"]
    with later(monkeypatch):
        first = take()
        good = file.read_bytes()
        for column in range(7):
            for value in values:
                document = json.loads(good)
                document["known"][column] = [value]
                file.write_text(json.dumps(document))
                assert take().digest == first.digest, (column, value)


def test_a_lost_object_is_stored_again(
    project: Path, state: Path, take: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a", "b")
    store = ObjectStore(state / "objects")
    with later(monkeypatch):
        first = take()
        for digest in (hashlib.sha256(b"a").hexdigest(), first.digest):
            store.path_of(digest).unlink()
            assert take().digest == first.digest
            assert store.has(digest)


def test_progress_is_reported_and_ends_with_everything(project: Path, state: Path, write: Write) -> None:
    write(*(f"{number:03}" for number in range(70)))
    heard: list[tuple[int, int]] = []
    take_snapshot(project, state, lambda files, size: heard.append((files, size)))
    assert heard[-1] == (70, 210)
    assert heard == sorted(heard)
    assert len(heard) > 1


def test_large_files_and_folders_are_named_with_the_line_that_leaves_them_out(
    project: Path, take: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "LARGE", 1000)
    for path, size in {
        "big file": 2000,
        "data/one": 1500,
        "many/a": 600,
        "many/b": 600,
        "small/a": 900,
    }.items():
        write(path)
        (project / path).write_bytes(b"x" * size)
    found = {each.path: each for each in take().warnings}
    assert sorted(found) == ["big file", "data/one", "many"]
    assert found["big file"].remedy.endswith(": /big\\ file")
    assert found["many"].remedy.endswith(": /many/")
    assert "has 1.2 kB and" in found["many"].message
    write("many/c")
    assert sorted(each.path for each in take().warnings) == ["big file", "data/one", "many"]


def test_lfs_pointers_are_named_also_when_they_come_from_the_cache(
    project: Path, take: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_link_that_leaves_the_project_is_kept_and_named(
    project: Path, state: Path, take: Any, link: str, target: str, warned: bool
) -> None:
    (project / "sub").mkdir()
    (project / link).symlink_to(target)
    snapshot = take()
    assert entries(state, snapshot)[link].detail == target
    assert [each.path for each in snapshot.warnings] == ([link] if warned else [])


def test_a_folder_that_became_a_link_ships_as_the_link(
    project: Path, state: Path, git: Git, take: Any, write: Write, tmp_path: Path
) -> None:
    git(project, "init", "-q")
    write("a/x", "a/y", "a-b", "b/a/x")
    git(project, "add", "-A")
    (project / "a").rename(tmp_path / "moved")
    (project / "a").symlink_to(tmp_path / "moved")
    assert sorted(entries(state, take())) == ["a", "a-b", "b/a/x"]


def test_a_tracked_file_that_was_deleted_is_no_reason_to_complain(
    project: Path, git: Git, take: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("a", "b", "c/d")
    git(project, "add", "-A")
    (project / "b").unlink()
    (project / "c" / "d").unlink()
    (project / "c").rmdir()
    (project / "c").write_text("now a file")
    with later(monkeypatch):
        for _ in range(2):
            snapshot = take()
            assert (snapshot.files, snapshot.warnings) == (2, ())


def test_a_tracked_file_that_became_a_pipe_is_named(project: Path, git: Git, take: Any, write: Write) -> None:
    git(project, "init", "-q")
    write("a", "b")
    git(project, "add", "-A")
    (project / "b").unlink()
    os.mkfifo(project / "b")
    snapshot = take()
    assert [each.path for each in snapshot.warnings] == ["b"]
    assert snapshot.files == 1
