"""The manifest's bytes, and what is refused."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.snapshots.manifest import Entry, Manifest, decode, encode

DIGEST = "ab" * 32


def document(*files: Any, version: Any = 1) -> bytes:
    return json.dumps({"format": version, "files": list(files)}).encode()


def test_the_bytes_are_the_documented_ones() -> None:
    manifest = Manifest((Entry("b", "l", "a", 0), Entry("a", "x", DIGEST, 3)))
    assert encode(manifest) == f'{{"format":1,"files":[["a","x","{DIGEST}",3],["b","l","a",0]]}}'.encode()


def test_the_order_of_entries_does_not_change_the_bytes() -> None:
    entries = tuple(Entry(name, "f", DIGEST, 1) for name in ("a/b", "a-b", "a.b", "é", "\udcff", "\U0001f600"))
    assert encode(Manifest(entries)) == encode(Manifest(entries[::-1]))
    assert {entry.path for entry in decode(encode(Manifest(entries))).entries} == {entry.path for entry in entries}


def test_an_empty_manifest_is_one() -> None:
    assert decode(encode(Manifest(()))) == Manifest(())


NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: name not in (b".", b"..") and not set(name) & {0, 47})


@settings(max_examples=60, deadline=None)
@given(st.sets(NAMES, max_size=6), st.binary(min_size=1).filter(lambda target: 0 not in target))
def test_any_file_name_survives_the_way_there_and_back(names: set[bytes], target: bytes) -> None:
    entries = [Entry("folder/" + os.fsdecode(name), "f", DIGEST, 7) for name in names]
    entries.append(Entry("link", "l", os.fsdecode(target), 0))
    manifest = Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))
    assert decode(encode(manifest)) == manifest


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../a",
        "a/../b",
        "a/..",
        ".",
        "./a",
        "a/./b",
        "a//b",
        "a/",
        "a\0b",
        "\0",
        "\ud800",
        "/",
    ],
)
def test_a_path_that_leads_away_is_refused(path: str) -> None:
    for files in (
        [[path, "f", DIGEST, 1]],
        [["!", "f", DIGEST, 1], [path, "f", DIGEST, 1], ["~", "f", DIGEST, 1]],
    ):
        with pytest.raises(HoldfastError) as caught:
            decode(document(*sorted(files)))
        assert caught.value.hint


@pytest.mark.parametrize("path", ["...", "a/..b", ".a", "a..", "a/...", "..a/b", "a b\n'\"\\", "\udc80"])
def test_a_path_that_only_looks_odd_is_accepted(path: str) -> None:
    assert decode(document([path, "f", DIGEST, 1])).entries[0].path == path


@pytest.mark.parametrize(
    "files",
    [
        [["b", "f", DIGEST, 1], ["a", "f", DIGEST, 1]],
        [["a", "f", DIGEST, 1], ["a", "f", DIGEST, 1]],
        [["a", "f", DIGEST, 1], ["a/b", "f", DIGEST, 1]],
        [["a", "l", "/etc", 0], ["a-b", "f", DIGEST, 1], ["a/b/c/d", "f", DIGEST, 1]],
        [["a/b", "l", "..", 0], ["a/b/c/d", "f", DIGEST, 1]],
    ],
)
def test_unsorted_double_and_nested_files_are_refused(files: list[Any]) -> None:
    with pytest.raises(HoldfastError):
        decode(document(*files))


@pytest.mark.parametrize(
    "row",
    [
        ["a", "f", "../../etc/passwd", 1],
        ["a", "f", DIGEST.upper(), 1],
        ["a", "f", DIGEST[:-1] + "\n", 1],
        ["a", "f", "", 1],
        ["a", "l", "", 0],
        ["a", "l", "b\0c", 0],
        ["a", "l", "\ud800", 0],
        ["a", "d", DIGEST, 1],
        ["a", "f", DIGEST, -1],
        ["a", "f", DIGEST, 1.5],
        ["a", "f", DIGEST, True],
        ["a", "f", DIGEST],
        ["a", "f", DIGEST, 1, 1],
        [1, "f", DIGEST, 1],
        ["a", None, DIGEST, 1],
        {"path": "a"},
        "afab",
        None,
    ],
)
def test_a_malformed_entry_is_refused(row: Any) -> None:
    with pytest.raises(HoldfastError):
        decode(document(row))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"format":1}', b'{"format":1,"files":{}}', b"\xff\xfe", b"[" * 100_000],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(HoldfastError):
        decode(data)


def test_a_manifest_of_a_later_format_says_so() -> None:
    with pytest.raises(HoldfastError, match="format is") as caught:
        decode(document(version=2))
    assert "upgrade" in caught.value.hint
