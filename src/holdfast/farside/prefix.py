"""Is what a follower has the beginning of this file? Both ends answer with a checksum of its first and last part."""

import os
import zlib

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
