"""SHA-256. Python has one of its own, and OpenSSL's, which is six times as fast and takes 3 ms to load: a tenth of what
the far side needs to start a short run, which has a few kilobytes to hash. So OpenSSL's is loaded when it pays."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import hashlib

ENOUGH = 1 << 20
"""Bytes that Python's own takes in the time in which OpenSSL's is loaded, and a little more."""


class _Left:
    bytes = ENOUGH


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
