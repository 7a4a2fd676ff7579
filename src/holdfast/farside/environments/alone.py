"""Whether somebody resolves, builds or installs on this host: the package cache is theirs meanwhile."""

import contextlib
import fcntl
import os
from typing import Iterator, List

from holdfast.farside import kernel
from holdfast.farside.environments.installed import names_in
from holdfast.farside.environments.uv import is_cache
from holdfast.farside.layout import BUILD_BYTE, Home


@contextlib.contextmanager
def alone(home: Home) -> Iterator[bool]:
    """Whether nobody installs from the cache; as long as this lasts nobody does: uv waits for the lock that it takes
    itself."""
    if is_building(home):
        yield False
        return
    held: List[int] = []
    try:
        yield all(_locked(os.path.join(home.cache(), name, ".lock"), held) for name in caches(home))
    finally:
        for descriptor in held:
            os.close(descriptor)


def caches(home: Home) -> List[str]:
    """Names of uv's: one for each platform."""
    return [name for name in names_in(home.cache()) if is_cache(name)]


def _locked(path: str, held: List[int]) -> bool:
    try:
        held.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return True
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_building(home: Home) -> bool:
    """Or resolving."""
    folders = (home.environments(), home.locks())
    locks = [os.path.join(folder, name) for folder in folders for name in names_in(folder) if name.endswith(".lock")]
    return any(kernel.lock_holder(lock, BUILD_BYTE) is not None for lock in locks)
