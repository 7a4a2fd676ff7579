"""Objects that arrive over several connections at once: once one is complete, all of them can start from it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.operations import objects
from holdfast.farside.operations.objects import MANIFEST_HEAD, Arrivals
from holdfast.farside.system.layout import Home, object_path
from holdfast.farside.system.refusal import Refused

LARGE = b"0123456789" * 3
DIGEST = hashlib.sha256(LARGE).hexdigest()
MANIFEST = MANIFEST_HEAD + json.dumps([["x", "f", DIGEST, len(LARGE)]], separators=(",", ":")).encode() + b"}"
SNAPSHOT = hashlib.sha256(MANIFEST).hexdigest()


@pytest.fixture
def first(home: Home) -> Arrivals:
    return announced(home)


@pytest.fixture
def second(home: Home) -> Arrivals:
    return announced(home)


def announced(home: Home) -> Arrivals:
    arrivals = Arrivals(home)
    arrivals.put({"digest": SNAPSHOT}, MANIFEST)
    assert arrivals.prepare({"snapshot": SNAPSHOT}, b"")["lacks"] == [[0, 1]]
    return arrivals


def put(arrivals: Arrivals, offset: int, data: bytes | None = None) -> Any:
    piece = LARGE[offset : offset + 10] if data is None else data
    return arrivals.put({"digest": DIGEST, "offset": offset, "more": offset < 20}, piece)


def stored(home: Home) -> bytes:
    return Path(object_path(home.objects(), DIGEST)).read_bytes()


@pytest.mark.parametrize("behind", [(), (0,), (0, 10)])
def test_a_connection_that_another_one_outran_can_start_all_the_same(home, first, second, behind):
    for offset in behind:
        put(second, offset)
    for offset in (0, 10, 20):
        put(first, offset)
    for offset in (0, 10, 20)[len(behind) :]:
        put(second, offset)
    first.require(SNAPSHOT)
    second.require(SNAPSHOT)
    assert stored(home) == LARGE
    assert os.listdir(objects.incoming(home)) in ([], [DIGEST])


@pytest.mark.parametrize("step", ["rename", "truncate", "chmod", "_digest"])
def test_one_that_is_outrun_while_it_finishes_can_start_all_the_same(home, first, second, monkeypatch, step):
    """Another connection takes the part at any moment of the last piece."""
    place = objects if step == "_digest" else os
    original = getattr(place, step)

    def outrun(*arguments: Any) -> Any:
        monkeypatch.setattr(place, step, original)
        try:
            put(second, 20)
        except Refused:
            for offset in (0, 10, 20):
                put(second, offset)
        return original(*arguments)

    for offset in (0, 10):
        put(first, offset)
    monkeypatch.setattr(place, step, outrun)
    put(first, 20)
    first.require(SNAPSHOT)
    second.require(SNAPSHOT)
    assert stored(home) == LARGE


def test_what_another_connection_brought_without_a_word_here_counts(home, first, second):
    with pytest.raises(Refused, match="1 objects of the snapshot"):
        first.require(SNAPSHOT)
    second.put({"digest": DIGEST}, LARGE)
    first.require(SNAPSHOT)


@pytest.mark.parametrize("offsets", [(0, 10, 20), (0,)], ids=["in pieces", "whole"])
def test_what_does_not_hash_to_its_name_does_not_get_it(home, first, offsets):
    for offset in offsets[:-1]:
        put(first, offset)
    with pytest.raises(Refused, match="is something else"):
        first.put({"digest": DIGEST, "offset": offsets[-1]}, b"wrongwrong")
    assert not os.path.exists(object_path(home.objects(), DIGEST))
    with pytest.raises(Refused, match="1 objects"):
        first.require(SNAPSHOT)


def test_an_object_that_was_verified_is_not_written_to_any_more(home, first, second):
    put(first, 0), put(second, 0)
    put(first, 10), put(first, 20)
    with pytest.raises(Refused):
        put(second, 20, b"wrongwrong"), put(second, 20, b"more than ten")
    assert stored(home) == LARGE


def test_a_piece_of_what_is_not_here_any_more_is_one_to_be_sent_anew(home, first):
    put(first, 0)
    os.unlink(os.path.join(objects.incoming(home), DIGEST))
    with pytest.raises(Refused) as caught:
        put(first, 10)
    assert caught.value.kind == "damaged"
    with pytest.raises(Refused, match="1 objects"):
        first.require(SNAPSHOT)


def test_a_part_that_is_adopted_while_parts_are_counted_is_none(home, first, second, monkeypatch):
    put(first, 0)
    listed = os.listdir

    def adopting(folder: str) -> list[str]:
        names = listed(folder)
        if folder == objects.incoming(home) and names:
            monkeypatch.setattr(os, "listdir", listed)
            put(first, 10), put(first, 20)
        return names

    monkeypatch.setattr(objects, "remove_stale_parts", lambda home: None)
    monkeypatch.setattr(os, "listdir", adopting)
    assert second.prepare({"snapshot": SNAPSHOT}, b"")["parts"] == {}
    second.require(SNAPSHOT)


def test_the_parts_of_two_connections_have_two_names(home, monkeypatch):
    """Two machines that share a disk can have two agents of one number."""
    names = set[str]()
    open_ = os.open

    def opening(path: str, *rest: Any) -> int:
        names.add(path)
        return open_(path, *rest)

    monkeypatch.setattr(os, "open", opening)
    digest = hashlib.sha256(b"1").hexdigest()
    for _ in range(2):
        Arrivals(home).put({"digest": digest}, b"1")
        os.unlink(object_path(home.objects(), digest))
    assert len(names) == 2


def test_two_connections_make_the_folder_of_what_arrives_at_the_same_moment(home, first, monkeypatch):
    make = os.mkdir

    def outrun(path: str, mode: int = 0o777) -> None:
        make(path, mode)  # by the other one
        make(path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "mkdir", outrun)
        put(first, 0)
    assert os.listdir(objects.incoming(home)) == [DIGEST]
