"""What differs between two snapshots."""

from __future__ import annotations

from typing import Literal

from holdfast.snapshots.manifest import ManifestEntry, encode_rows
from holdfast.snapshots.snapshot_differences import SnapshotDifference, compare_snapshots, unified_diff
from holdfast.snapshots.store import ObjectStore


def snapshot(store: ObjectStore, files: dict[str, bytes], kind: Literal["f", "x", "l"] = "f") -> str:
    rows = [
        ManifestEntry(path, "l", content.decode(), 0)
        if kind == "l"
        else ManifestEntry(path, kind, store.put_bytes(content), len(content))
        for path, content in files.items()
    ]
    return store.put_bytes(encode_rows(rows))


def test_added_removed_and_changed_paths_are_told_apart(store):
    a = snapshot(store, {"gone": b"1", "same": b"2", "other": b"3"})
    b = snapshot(store, {"new": b"1", "same": b"2", "other": b"4"})
    difference = compare_snapshots(store, a, b)
    assert difference == SnapshotDifference(added=("new",), removed=("gone",), changed=("other",))
    assert difference
    assert not compare_snapshots(store, a, a)
    assert unified_diff(store, a, a) == ""


def test_the_diff_is_the_one_that_people_know(store):
    a = snapshot(store, {"train.py": b"one\ntwo\nthree\n", "gone": b"bye\n", "last": b"x\n"})
    b = snapshot(store, {"train.py": b"one\n2\nthree\n", "new": b"hello", "last": b"x"})
    assert unified_diff(store, a, b) == (
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
        "--- a/last\n+++ b/last\n@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n"
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hello\n\\ No newline at end of file\n"
        "--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    )


def test_binary_and_large_files_are_only_named(store):
    a = snapshot(store, {"model": b"\0a", "table": b"x" * 50})
    b = snapshot(store, {"model": b"\0b", "table": b"y" * 50})
    assert unified_diff(store, a, b, max_bytes=20) == (
        "model: binary files differ\ntable: differs, and is too large to show (50 B)\n"
    )


def test_a_change_of_kind_is_said(store):
    a = snapshot(store, {"run": b"x\n"})
    assert unified_diff(store, a, snapshot(store, {"run": b"x\n"}, "x")) == "run: a file became an executable file\n"
    assert unified_diff(store, a, snapshot(store, {"run": b"t"}, "l")).splitlines()[0] == "run: a file became a link"


def test_the_text_can_be_printed_whatever_the_names_and_bytes_are(store):
    a = snapshot(store, {"a\nb\udcff": b"caf\xe9\r\nx\x0cy\n"})
    b = snapshot(store, {"a\nb\udcff": b"caf\xe8\r\nx\x0cy\n"})
    text = unified_diff(store, a, b)
    text.encode("utf-8")
    assert text.splitlines()[0] == "--- a/a\\nb\\xff"
    assert "-caf\\xe9" in text
