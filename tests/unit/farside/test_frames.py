"""Frames: they are read as they were written, and nothing else is taken for a frame."""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.system import frames

VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(),
    lambda inner: some.lists(inner, max_size=3),
    max_leaves=5,
)


@given(
    some.lists(some.tuples(some.dictionaries(some.text(), VALUES, max_size=3), some.binary(max_size=200)), max_size=4)
)
def test_a_stream_of_frames_is_read_as_it_was_written(messages):
    stream = io.BytesIO(b"".join(frames.encode(message, body) for message, body in messages))
    read = []
    while (frame := frames.decode(stream.read)) is not None:
        read.append(frame)
    assert read == messages


@given(some.binary(min_size=1, max_size=300))
def test_garbage_is_an_error_and_never_a_frame(data):
    with pytest.raises(frames.FrameError):
        frames.decode(io.BytesIO(data).read)


@given(some.integers(min_value=1, max_value=60), some.binary(min_size=1, max_size=1))
def test_a_damaged_or_cut_frame_is_an_error(position, byte):
    whole = frames.encode({"op": "hello"}, b"some body")
    position %= len(whole)
    if position:
        with pytest.raises(frames.FrameError):
            frames.decode(io.BytesIO(whole[:position]).read)
    damaged = whole[:position] + byte + whole[position + 1 :]
    if damaged != whole:
        with pytest.raises(frames.FrameError):
            frames.decode(io.BytesIO(damaged).read)


def test_a_body_that_is_checked_elsewhere_is_taken_as_it_comes_and_its_header_is_not():
    head, body = frames.encode_apart({"push": "piece"}, b"x" * 20000, is_checked=False)

    assert frames.decode(io.BytesIO(head + b"y" + body[1:]).read) == ({"push": "piece"}, b"y" + body[1:])
    with pytest.raises(frames.FrameError, match="checksum"):
        frames.decode(io.BytesIO(head.replace(b"piece", b"niece") + body).read)


@pytest.mark.parametrize(
    ("header_length", "body_length"), [(0xFFFFFFFF, 0), (frames.MAX_HEADER + 1, 0), (0, frames.MAX_BODY + 1)]
)
def test_a_huge_length_is_not_sent_and_refused_before_anything_is_read(header_length, body_length):
    header = io.BytesIO(struct.pack(">4sIII", frames.MAGIC, header_length, body_length, 0) + b"more")
    with pytest.raises(frames.FrameError, match="claims"):
        frames.decode(header.read)
    assert header.tell() == 16
    with pytest.raises(frames.FrameError):
        frames.encode({}, b"x" * (frames.MAX_BODY + 1))


@pytest.mark.parametrize("header", [b"[1]", b"nonsense", b"\xff", b'"text"', b"[" * 100000])
def test_a_header_that_is_no_object_is_refused(header):
    data = struct.pack(">4sIII", frames.MAGIC, len(header), 0, zlib.crc32(header)) + header
    with pytest.raises(frames.FrameError):
        frames.decode(io.BytesIO(data).read)
