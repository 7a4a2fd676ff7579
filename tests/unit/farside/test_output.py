"""Collecting output: redaction across block borders, and a full disk that loses nothing."""

from __future__ import annotations

import errno
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.run import output
from holdfast.farside.run.output import Pump, Redactor, make_pipe
from holdfast.workbench.submitting import planning

SECRET = "abcabd-secret"


@given(some.lists(some.sampled_from([b"abc", b"abcabd", b"-secret", b"x", b"\n", SECRET.encode()]), max_size=12))
def test_a_secret_is_masked_wherever_the_stream_was_cut(blocks):
    redactor = Redactor([SECRET])
    shown = b"".join(redactor.feed(block) for block in blocks) + redactor.finish()
    assert shown == b"".join(blocks).replace(SECRET.encode(), b"***")


def test_of_two_secrets_the_longer_one_is_masked_whole():
    redactor = Redactor(["secret", "secret-and-more"])
    assert redactor.feed(b"secret-and-more!") + redactor.finish() == b"***!"


@given(some.lists(some.sampled_from([b"abcd", b"efgh", b"secretAA", b"token9", b"AA", b"x"]), max_size=10))
def test_values_that_begin_or_overlap_each_other_leave_nothing_readable(blocks):
    values = ["abcd", "abcdefgh", "secretAA", "AAtoken9"]
    redactor = Redactor(values)
    shown = b"".join(redactor.feed(block) for block in blocks) + redactor.finish()
    whole = b"".join(blocks)
    masked = set()
    for value in values:
        place = whole.find(value.encode())
        while place >= 0:
            masked.update(range(place, place + len(value)))
            place = whole.find(value.encode(), place + 1)
    left = bytes(each for place, each in enumerate(whole) if place not in masked)
    assert shown.replace(b"***", b"") == left


def test_each_line_of_a_long_value_and_its_form_in_json_are_masked():
    key = "-----BEGIN-----\nfirst line\nsecond line"
    redactor = Redactor([key])
    text = f"{key}|first line|{json.dumps(key)}|second line".encode()
    shown = redactor.feed(text) + redactor.finish()
    assert b"first" not in shown
    assert b"second" not in shown


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_value_that_json_writes_otherwise_is_masked_there_too(is_ascii):
    redactor = Redactor(['geh"eim-ß'])
    shown = redactor.feed(json.dumps({"token": 'geh"eim-ß'}, ensure_ascii=is_ascii).encode()) + redactor.finish()
    assert shown == b'{"token": "***"}'


def test_without_secrets_nothing_is_held_back():
    assert Redactor([]).feed(b"abc") == b"abc"


def test_both_ends_agree_on_how_short_a_secret_may_be():
    assert output.SHORTEST_SECRET == planning.SHORTEST_SECRET


def test_a_value_too_short_to_be_taken_out_is_not_taken_out():
    redactor = Redactor(["abc"])
    assert redactor.feed(b"abc") + redactor.finish() == b"abc"


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


def test_a_disk_that_takes_little_at_a_time_gets_everything(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    os.write(writer, b"one two three")
    os.close(writer)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:5]))
    assert pump.finish() == 0
    assert (tmp_path / "log").read_bytes() == b"one two three"


def test_on_a_full_disk_the_pump_keeps_what_it_read_and_stops_reading(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    real, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        if full[0] and descriptor != writer:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    os.write(writer, b"one")
    pump.move()
    assert pump.blocked == "No space left on device"
    os.write(writer, b"two")
    assert not pump.move(), "nothing more is read while the disk is full"
    full[0] = False
    os.close(writer)
    pump.move()
    assert pump.finish() == 0
    assert (tmp_path / "log").read_bytes() == b"onetwo"


def test_what_could_not_be_written_at_last_is_counted(tmp_path, monkeypatch):
    reader, writer = make_pipe()
    pump = Pump(reader, str(tmp_path / "log"), Redactor([]))
    os.write(writer, b"four")
    os.close(writer)

    def write(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    assert pump.finish() == 4
