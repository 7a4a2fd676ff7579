"""A lock on an open file that one holder has at a time, in any process, and that ends with whoever holds it."""

from __future__ import annotations

import os
import sys


def try_lock(descriptor: int) -> bool:
    """Whether it is ours now; closing the descriptor, or the end of the process, gives it back."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_BEYOND = 1 << 30
"""On Windows nobody else can read a byte that is locked: one is taken that no file has."""
