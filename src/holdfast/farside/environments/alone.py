"""Whether somebody resolves, builds or installs on this host: the package cache is theirs meanwhile."""

import contextlib
import fcntl
import os
from typing import Iterator

from holdfast.farside import kernel
from holdfast.farside.environments.installed import names_in
from holdfast.farside.layout import BUILD_BYTE, Home


@contextlib.contextmanager
def alone(home: Home) -> Iterator[bool]:
    """Whether nobody installs from the cache; as long as this lasts nobody does: uv waits for the lock that it takes
    itself."""
    if is_building(home):
        yield False
        return
    try:
        descriptor = os.open(os.path.join(home.cache(), "uv", ".lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield True
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_alone = True
    except OSError:
        is_alone = False
    try:
        yield is_alone
    finally:
        os.close(descriptor)


def is_building(home: Home) -> bool:
    """Or resolving."""
    folders = (home.environments(), home.locks())
    locks = [os.path.join(folder, name) for folder in folders for name in names_in(folder) if name.endswith(".lock")]
    return any(kernel.lock_holder(lock, BUILD_BYTE) is not None for lock in locks)
