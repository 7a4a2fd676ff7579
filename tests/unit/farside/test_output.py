"""Collecting output: redaction across block borders, and a full disk that loses nothing."""

from __future__ import annotations

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.system import output
from holdfast.farside.system.output import Pump, Redactor, make_pipe
from holdfast.workbench.submitting import run_plan

SECRET = "abcabd-secret"


def shown(secrets: list[str], *blocks: bytes) -> bytes:
    """What is written for a stream of these blocks."""
    redactor = Redactor(secrets)
    return b"".join(redactor.feed(block) for block in blocks) + redactor.finish()


@given(some.lists(some.sampled_from([b"abc", b"abcabd", b"-secret", b"x", b"\n", SECRET.encode()]), max_size=12))
def test_a_secret_is_masked_wherever_the_stream_was_cut(blocks):
    assert shown([SECRET], *blocks) == b"".join(blocks).replace(SECRET.encode(), b"***")


def test_the_longest_secret_is_masked_whole_and_one_that_is_too_short_is_not():
    assert shown(["secret", "secret-and-more"], b"secret-and-more!") == b"***!"
    assert shown(["abc"], b"abc") == b"abc"
    assert Redactor([]).feed(b"abc") == b"abc", "without secrets nothing is held back"
    assert output.SHORTEST_SECRET == run_plan.SHORTEST_SECRET, "both ends agree"


def test_each_line_of_a_long_value_and_its_form_in_json_are_masked():
    key = "-----BEGIN-----\nfirst line\nsecond line"
    found = shown([key], f"{key}|first line|{json.dumps(key)}|second line".encode())
    assert b"first" not in found
    assert b"second" not in found


@given(some.lists(some.sampled_from([b"abcd", b"efgh", b"secretAA", b"token9", b"AA", b"x"]), max_size=10))
def test_values_that_begin_or_overlap_each_other_leave_nothing_readable(blocks):
    values = ["abcd", "abcdefgh", "secretAA", "AAtoken9"]
    whole = b"".join(blocks)
    masked = set[int]()
    for value in values:
        place = whole.find(value.encode())
        while place >= 0:
            masked.update(range(place, place + len(value)))
            place = whole.find(value.encode(), place + 1)
    left = bytes(each for place, each in enumerate(whole) if place not in masked)
    assert shown(values, *blocks).replace(b"***", b"") == left


def test_a_pump_moves_everything_and_notices_the_end(tmp_path):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    os.write(writer, b"one")
    assert pump.move()
    assert pump.open
    os.write(writer, b"two")
    os.close(writer)
    pump.move()
    assert not pump.open
    assert pump.finish() == 0
    assert (tmp_path / "log").read_bytes() == b"onetwo"


def test_on_a_full_disk_the_pump_keeps_what_it_read_and_stops_reading(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    with monkeypatch.context() as full:
        fill_up(full, writer)
        os.write(writer, b"one")
        pump.move()
        assert pump.blocked == "No space left on device"
        os.write(writer, b"two")
        assert not pump.move(), "nothing more is read while the disk is full"
    os.close(writer)
    pump.move()
    assert pump.finish() == 0
    assert (tmp_path / "log").read_bytes() == b"onetwo"


def fill_up(monkeypatch: pytest.MonkeyPatch, writer: int) -> None:
    """No file accepts another byte; the pipe does."""
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if descriptor != writer:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)


def test_what_could_not_be_written_at_last_is_counted(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    os.write(writer, b"four")
    os.close(writer)
    fill_up(monkeypatch, writer)
    assert pump.finish() == 4


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_value_that_json_writes_otherwise_is_masked_there_too(is_ascii):
    redactor = Redactor(['geh"eim-ß'])
    shown = redactor.feed(json.dumps({"token": 'geh"eim-ß'}, ensure_ascii=is_ascii).encode()) + redactor.finish()
    assert shown == b'{"token": "***"}'


def test_a_disk_that_takes_little_at_a_time_gets_everything(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    os.write(writer, b"one two three")
    os.close(writer)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:5]))
    assert pump.finish() == 0
    assert (tmp_path / "log").read_bytes() == b"one two three"
