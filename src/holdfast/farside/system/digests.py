"""SHA-256. Python has one of its own, and OpenSSL's, which is six times as fast and takes 3 ms to load: a tenth of what
the far side needs to start a short run, which has a few kilobytes to hash. So OpenSSL's is loaded when it pays."""

import os
import sys
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import hashlib

_ENOUGH = 1 << 20
"""Bytes that Python's own takes in the time in which OpenSSL's is loaded, and a little more."""


class _Left:
    bytes = _ENOUGH


def sha256(data: bytes = b"", size: int = 0) -> "hashlib._Hash":
    """As the standard library's. `size`: of what will come after `data`, if that is known."""
    _Left.bytes -= len(data) + size
    own = _pythons_own() if _Left.bytes >= 0 and "hashlib" not in sys.modules else None
    if own is not None:
        return own.sha256(data)  # type: ignore[no-any-return] # it does the same
    import hashlib

    return hashlib.sha256(data)


def _pythons_own() -> Any:
    """None where this Python was built without it."""
    try:
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256")
    except ImportError:
        return None


HEAD, TAIL = 1 << 16, 1 << 20
"""Bytes that count. Files only grow, so damage shows at the beginning (another file) or at the end (a cut, zeroes
after power loss); reading a log of gigabytes at each look would find no more."""


def prefix_checksum(descriptor: int, length: int) -> int:
    """CRC-32 over the head and the tail of the first `length` bytes; -1 when there are fewer. Moves the descriptor's
    place."""
    checksum = 0
    for begin, end in ((0, min(HEAD, length)), (max(HEAD, length - TAIL), length)):
        os.lseek(descriptor, begin, os.SEEK_SET)  # Windows, where a follower may be, has no pread
        data = os.read(descriptor, end - begin) if end > begin else b""
        if len(data) < end - begin:
            return -1
        checksum = zlib.crc32(data, checksum)
    return checksum
