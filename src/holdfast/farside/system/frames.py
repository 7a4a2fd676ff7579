"""The protocol's framing, used by both ends: a JSON object and a body of bytes, with magic, bounded lengths and a
checksum.

A login shell may print anything before the far side starts, so the far side first writes a marker line that holds a
nonce chosen by the near side; frames begin after it. A frame that does not check is an error, never skipped: the
connection is dropped and taken up again by offset.
"""

import json
import struct
import zlib
from typing import Any, Callable, Dict, List, Optional, Tuple

MAGIC, _BODY_UNCHECKED = b"HFf1", b"HFf2"
MAX_HEADER = 16 << 20
MAX_BODY = 4 << 20
CHUNK = 1 << 20
_LARGE = 1 << 14
_PREFIX = struct.Struct(">4sIII")

Message = Dict[str, Any]


class FrameError(Exception):
    """What was read is not a frame."""


class Cut(FrameError):
    """It is the beginning of one, and nothing more came."""


def marker(nonce: str) -> bytes:
    return b"\nHOLDFAST " + nonce.encode("ascii") + b"\n"


def encode(message: Message, body: bytes = b"") -> bytes:
    return b"".join(encode_apart(message, body))


def encode_apart(message: Message, body: bytes = b"", is_checked: bool = True) -> List[bytes]:
    """A frame in blocks that are to be written one after the other: a large body is not copied for it. Without
    `is_checked` the checksum is of the header alone: the body is part of something that is checked as a whole."""
    header = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(header) > MAX_HEADER or len(body) > MAX_BODY:
        raise FrameError("frame too large: %d + %d bytes" % (len(header), len(body)))
    magic, checksum = _BODY_UNCHECKED, zlib.crc32(header)
    if is_checked:
        magic, checksum = MAGIC, zlib.crc32(body, checksum)
    head = _PREFIX.pack(magic, len(header), len(body), checksum) + header
    return [head, body] if len(body) > _LARGE else [head + body]


def decode(read: Callable[[int], bytes]) -> Optional[Tuple[Message, bytes]]:
    """One frame from `read(n)`, which returns n bytes, or fewer only at the end. None: the stream ended between
    frames."""
    prefix = read(_PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < _PREFIX.size:
        raise Cut("the stream ended inside a frame")
    magic, header_length, body_length, checksum = _PREFIX.unpack(prefix)
    if magic not in (MAGIC, _BODY_UNCHECKED):
        raise FrameError("not a frame: %r" % (prefix[:16],))
    if header_length > MAX_HEADER or body_length > MAX_BODY:
        raise FrameError("a frame claims %d + %d bytes" % (header_length, body_length))
    header, body = read(header_length), read(body_length)
    if len(header) < header_length or len(body) < body_length:
        raise Cut("the stream ended inside a frame")
    if zlib.crc32(body if magic == MAGIC else b"", zlib.crc32(header)) != checksum:
        raise FrameError("a frame's checksum is wrong")
    try:
        message = json.loads(header.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise FrameError("a frame's header is not JSON: %s" % error)
    if not isinstance(message, dict):
        raise FrameError("a frame's header is not an object")
    return message, body
