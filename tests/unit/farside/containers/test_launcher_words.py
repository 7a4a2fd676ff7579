"""What the launcher says, and what a script says in its place."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.farside.containers.launcher_words import (
    LastWords,
    is_from_inside,
    parse_event,
    parse_last_words,
    read_last_words,
)
from kit.last_words import LAST_WORDS


def test_last_words_are_read_as_the_launcher_writes_them(tmp_path):
    (tmp_path / "status.json").write_text(json.dumps(LAST_WORDS))
    assert read_last_words(str(tmp_path)) == LastWords(3, None, True, 15, [[7, "python", "SIGTERM"]], 1, 0, 1 << 30)


@pytest.mark.parametrize(
    "change",
    [{"code": 1e400, "signal": None}, {"code": "0"}, {"code": -1}, {"code": None, "signal": 0}, {"code": True}],
)
def test_words_without_an_end_of_the_script_are_none(change):
    assert parse_last_words({**LAST_WORDS, **change}) is None


def test_odd_fields_of_last_words_count_as_absent():
    odd = {"owned": 1, "outside": "x", "swept": [[1], {}, [2, "n" * 9999, []]], "count": -1, "memory_kills": []}
    found = parse_last_words({**LAST_WORDS, **odd, "memory_limit": 10**400})
    assert found == LastWords(3, None, False, None, [[2, "n" * 200, "[]"]], 0, None, None)


@pytest.mark.parametrize("name", ["link", "pipe", "folder", "large"])
def test_what_is_no_file_of_words_is_none(tmp_path, name):
    path = tmp_path / "status.json"
    if name == "link":
        (tmp_path / "other").write_text(json.dumps(LAST_WORDS))
        path.symlink_to(tmp_path / "other")
    elif name == "pipe":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    else:
        path.write_bytes(b" " * (2 << 20) + json.dumps(LAST_WORDS).encode())
    assert read_last_words(str(tmp_path)) is None


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b'{"e": 1}', b'{"e": "other"}', b'{"e": "note"}', b'{"e": "status", "status": 1}', b"[" * 10**5],
)
def test_lines_of_another_form_were_never_said(line):
    assert parse_event(line) is None


def test_only_the_keeper_says_that_docker_refused():
    assert is_from_inside(parse_event(b'{"e": "started", "pid": 7}') or {})
    refused = parse_event(b'{"e": "refused", "kind": "a", "message": "b", "hint": "c", "made": false}')
    assert not is_from_inside(refused or {})
