"""The manifest's bytes, and what is refused."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.snapshots.manifest import ManifestEntry, decode, encode_rows

DIGEST = "ab" * 32


def document(*files: Any, version: Any = 1) -> bytes:
    return json.dumps({"format": version, "files": list(files)}).encode()


def test_the_bytes_are_the_documented_ones_whatever_the_order_of_entries():
    manifest = (ManifestEntry("b", "l", "a", 0), ManifestEntry("a", "x", DIGEST, 3))
    assert encode_rows(manifest) == f'{{"format":1,"files":[["a","x","{DIGEST}",3],["b","l","a",0]]}}'.encode()
    entries = tuple(ManifestEntry(name, "f", DIGEST, 1) for name in ("a/b", "a-b", "a.b", "é", "\udcff", "\U0001f600"))
    assert encode_rows(entries) == encode_rows(entries[::-1])
    assert {entry.path for entry in decode(encode_rows(entries))} == {entry.path for entry in entries}
    assert decode(encode_rows(())) == ()


def may_be_a_name(name: bytes) -> bool:
    return name not in (b".", b"..") and not set(name) & {0, 47} and reserved_path([os.fsdecode(name)]) is None


NAMES = st.binary(min_size=1, max_size=6).filter(may_be_a_name)


@given(st.sets(NAMES, max_size=6), st.binary(min_size=1).filter(lambda target: 0 not in target))
def test_any_file_name_survives_the_way_there_and_back(names, target):
    entries = [ManifestEntry("folder/" + os.fsdecode(name), "f", DIGEST, 7) for name in names]
    entries.append(ManifestEntry("link", "l", os.fsdecode(target), 0))
    manifest = tuple(sorted(entries, key=lambda entry: entry.path))
    assert decode(encode_rows(manifest)) == manifest


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "..", "../a", "a/../b", "a/..", ".", "./a", "a/./b", "a//b", "a/", "a\0b", "\0"),
        *("\ud800", "/"),
    ],
)
def test_a_path_that_leads_away_is_refused(path):
    alone = [path, "f", DIGEST, 1]
    for files in ([alone], [["!", "f", DIGEST, 1], alone, ["~", "f", DIGEST, 1]]):
        with pytest.raises(HoldfastError) as caught:
            decode(document(*sorted(files)))
        assert caught.value.hint


@pytest.mark.parametrize("path", ["...", "a/..b", ".a", "a..", "a/...", "..a/b", "a b\n'\"\\", "\udc80"])
def test_a_path_that_only_looks_odd_is_accepted(path):
    assert decode(document([path, "f", DIGEST, 1]))[0].path == path


FILE = ["a", "f", DIGEST, 1]
ROWS = [
    *(["a", "f", detail, 1] for detail in ("../../etc/passwd", DIGEST.upper(), DIGEST[:-1] + "\n", "")),
    *(["a", "l", target, 0] for target in ("", "b\0c", "\ud800")),
    *(["a", "f", DIGEST, size] for size in (-1, 1.5, True)),
    *(["a", "d", DIGEST, 1], ["a", "f", DIGEST], ["a", "f", DIGEST, 1, 1], [1, "f", DIGEST, 1], ["a", None, DIGEST, 1]),
    *({"path": "a"}, "afab", None),
]
UNSORTED_DOUBLE_OR_NESTED = [
    [["b", "f", DIGEST, 1], FILE],
    [FILE, FILE],
    [FILE, ["a/b", "f", DIGEST, 1]],
    [["a", "l", "/etc", 0], ["a-b", "f", DIGEST, 1], ["a/b/c/d", "f", DIGEST, 1]],
    [["a/b", "l", "..", 0], ["a/b/c/d", "f", DIGEST, 1]],
]


@pytest.mark.parametrize(
    "data",
    [
        *(document(row) for row in ROWS),
        *(document(*files) for files in UNSORTED_DOUBLE_OR_NESTED),
        *(b"", b"{", b"[]", b"null", b'{"format":1}', b'{"format":1,"files":{}}', b"\xff\xfe", b"[" * 100_000),
    ],
    ids=lambda data: data[:70].decode("ascii", "replace"),
)
def test_what_is_no_manifest_or_has_malformed_entries_is_refused(data):
    with pytest.raises(HoldfastError):
        decode(data)


def test_a_manifest_of_a_later_format_says_so():
    with pytest.raises(HoldfastError, match="format is") as caught:
        decode(document(version=2))
    assert "upgrade" in caught.value.hint
