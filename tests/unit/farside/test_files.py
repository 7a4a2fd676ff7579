"""The run's own copy of a snapshot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

import pytest

from holdfast.farside.system.files import materialise, read_json, read_record
from holdfast.farside.system.own_files import moment_after, written
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import WorkingTree
from holdfast.snapshots.manifest import ManifestEntry, encode_rows
from holdfast.snapshots.store import ObjectStore


def _snapshot(store: ObjectStore, *entries: tuple[str, Literal["f", "x", "l"], str]) -> str:
    made = [
        ManifestEntry(path, kind, text, 0)
        if kind == "l"
        else ManifestEntry(path, kind, store.put_bytes(text.encode()), len(text))
        for path, kind, text in entries
    ]
    return store.put_bytes(encode_rows(made))


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "work"
    folder.mkdir(parents=True)
    return folder


def test_files_are_copies_and_never_hard_links_to_the_store(store, work):
    digest = _snapshot(store, ("a.py", "f", "one"), ("deep/run.sh", "x", "two"), ("link", "l", "a.py"))
    materialise(digest, [str(store.root)], str(work))
    assert (work / "a.py").stat().st_nlink == 1
    assert (work / "deep/run.sh").stat().st_mode & 0o111
    assert (work / "link").readlink() == Path("a.py")
    (work / "a.py").write_text("changed by the script")
    assert store.read(ManifestEntry("", "f", store.put_bytes(b"one"), 3).detail) == b"one"


def test_what_the_script_wrote_is_told_from_what_it_was_given(store, work):
    digest = _snapshot(store, ("a.py", "f", "one"), ("b.py", "f", "two"))
    since = begun(materialise(digest, [str(store.root)], str(work)), work)
    (work / "b.py").write_text("longer than before")
    (work / "outputs" / "model").write_text("m")
    assert written(WorkingTree(str(work.parent)), since, {}) == [["outputs/model", 1], ["b.py", 18]]


def begun(last: int, work: Path) -> int:
    """The moment from which a run would have begun."""
    (work.parent / "bound.json").write_text("{}")
    return moment_after(last, str(work.parent / "bound.json"))


def test_a_file_counts_as_written_whatever_time_the_script_gives_it(store, work):
    digest = _snapshot(store, ("a.py", "f", "one"), ("b.py", "f", "two"), ("c.py", "f", "six"), ("l", "l", "a.py"))
    since = begun(materialise(digest, [str(store.root)], str(work)), work)
    times = (work / "a.py").stat()
    (work / "a.py").write_text("ONE")
    os.utime(work / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    (work / "b.py").chmod(0o600)
    (work / "new").write_text("")
    os.utime(work / "new", (0, 0))
    os.mkfifo(work / "pipe")  # nothing that could come home
    assert [path for path, _ in written(WorkingTree(str(work.parent)), since, {})] == ["a.py", "b.py", "new"]


def test_caches_are_not_what_a_run_wrote_but_everything_in_its_outputs_is(store, work):
    since = begun(materialise(_snapshot(store), [str(store.root)], str(work)), work)
    names = ("__pycache__/a.pyc", ".ipynb_checkpoints/n", "p/.cache/huge", "p/.git/config", ".venv/bin/x", "p/m.pyc")
    for name in (*names, "outputs/__pycache__/a.pyc", "p/cache/mine", "wandb/latest"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")
    kept = ["outputs/__pycache__/a.pyc", "p/cache/mine", "wandb/latest"]
    assert [path for path, _ in written(WorkingTree(str(work.parent)), since, {})] == kept


def test_the_moment_is_later_than_what_was_laid_out_and_a_clock_that_went_back_is_not_waited_for(tmp_path, monkeypatch):
    marker = tmp_path / "marker"
    marker.write_text("")
    last = marker.stat().st_ctime_ns  # as of a file that was laid out within the same step of the disk's clock
    assert moment_after(last, str(marker)) > last
    monkeypatch.setattr("holdfast.farside.system.own_files._LONGEST_WAIT", 0.0)
    assert moment_after(1 << 62, str(marker)) < 1 << 62


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b"])
def test_a_hostile_manifest_writes_nothing_outside(store, work, path):
    content = store.put_bytes(b"x")
    digest = store.put_bytes(json.dumps({"format": 1, "files": [[path, "f", content, 1]]}).encode())
    with pytest.raises(Refused):
        materialise(digest, [str(store.root)], str(work))
    assert list(work.parent.iterdir()) == [work]


@pytest.mark.parametrize(
    ("content", "found"),
    [(b'{"a": "\xe9"}', {"a": "\ufffd"}), (b"[1]", None), (b"{", None), (None, None)],
    ids=["a letter in Latin-1", "no object", "cut", "no file"],
)
def test_an_object_is_read_whatever_letters_are_in_it(tmp_path, content, found):
    if content is not None:
        (tmp_path / "a.json").write_bytes(content)
    assert read_json(str(tmp_path / "a.json")) == found


def test_an_object_is_read_whole_or_not_at_all_and_a_fifo_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.farside.system.files.LARGEST_RECORD", 8)
    (tmp_path / "a.json").write_bytes(b'{"a": 1}')
    (tmp_path / "link").symlink_to(tmp_path / "a.json")
    (tmp_path / "large").write_bytes(b'{"a": 1} ')
    os.mkfifo(tmp_path / "pipe")
    found = {name: read_json(str(tmp_path / name)) for name in ("a.json", "link", "large", "pipe", "absent")}
    assert found == {"a.json": {"a": 1}, "link": {"a": 1}, "large": None, "pipe": None, "absent": None}
    assert (read_record(str(tmp_path / "a.json")), read_record(str(tmp_path / "link"))) == ({"a": 1}, None)
