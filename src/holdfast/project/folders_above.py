"""What lies above the folder of a command: in a folder that others can write to, such as /tmp, anyone can make it."""

from __future__ import annotations

import os
import stat


def counts_above(found: str | bytes | os.PathLike[str]) -> bool:
    """Whether `found`, above the folder that is asked about, may decide anything there: it is this account's or root's.
    Who owns the folder that it is in can change all below anyway: a group's project counts. Raises OSError."""
    if not hasattr(os, "getuid"):
        return True
    owner, around = os.lstat(found).st_uid, os.stat(os.path.dirname(found))
    return owner in (os.getuid(), 0) or (owner == around.st_uid and not around.st_mode & stat.S_IWOTH)
