"""Whether the first process of a run's container lives: by the lock that it holds, which no death leaves behind. All
others in the container end with it.

The script can take the lock's file, and so can a cleaner. So the file has a second name in the run's folder, which no
container reaches. Where the two are not one file, nobody may be seen to hold it, and that tells nothing.
"""

import os
import stat
from typing import Optional, Tuple

from holdfast.farside.system import kernel
from holdfast.farside.system.layout import LOCK
from holdfast.farside.system.lost_locks import LostLocks

BESIDE = "inside.lock"
_BYTE = 0


def make(inside: str) -> None:
    """Before the container starts."""
    own, beside = _names(inside)
    os.close(os.open(own, os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        os.link(own, beside)
    except OSError:
        pass  # a disk without hard links: then there is one name


def launcher_of(inside: str, root: str = "/proc") -> Optional[int]:
    """The launcher's pid, 0 where it is in another pid namespace, None where none is seen."""
    for path in _names(inside):
        try:
            found = kernel.lock_holder(path, _BYTE)
        except OSError:
            continue  # the script has put something else there
        if found is not None:
            return found
    if is_untouched(inside) and os.path.lexists(_names(inside)[1]):
        return None
    return next(iter(LostLocks(root).holders_below(inside, os.sep + LOCK, _BYTE)), None)


def is_untouched(inside: str) -> bool:
    """Whether the lock is the file that was made. Runs of earlier versions have it by one name."""
    own, beside = _names(inside)
    try:
        status = os.lstat(own)
        if not os.path.lexists(beside):
            return stat.S_ISREG(status.st_mode)
        return os.path.samestat(status, os.lstat(beside))
    except OSError:
        return False


def _names(inside: str) -> Tuple[str, str]:
    return os.path.join(inside, LOCK), os.path.join(os.path.dirname(inside), BESIDE)
