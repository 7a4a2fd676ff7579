"""The lock on Holdfast's folder: shared while something is added to it, held alone while something is removed."""

import errno
import fcntl
import os
import time

from holdfast.farside.system.layout import ENTRY, Home
from holdfast.farside.system.refusal import Refused

PATIENCE = 10.0
"""Seconds to wait for the others: a start takes less, and so does what a sweep does alone."""


class Adding:
    """While this is held no process removes what is here. Refused while and after the folder is removed."""

    def __init__(self, home: Home) -> None:
        self._home, self._descriptor = home, -1

    def __enter__(self) -> None:
        self._refuse_removed()
        self._home.make()
        busy = Refused(
            "busy", "Holdfast's folder `%s` is being removed or cleaned." % self._home.path, "Try again in a minute."
        )
        self._descriptor = _held(self._home, fcntl.LOCK_SH, busy)
        try:
            self._refuse_removed()
        except Refused:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _refuse_removed(self) -> None:
        """What this process would still have to import went with the folder."""
        if not os.path.exists(ENTRY):
            message = "Holdfast's folder `%s` was removed a moment ago." % self._home.path
            raise Refused("busy", message, "The same command again brings it back.")


class Alone:
    """While this is held no process adds anything here. Refused while one is at it."""

    def __init__(self, home: Home) -> None:
        self._home, self._descriptor = home, -1

    def __enter__(self) -> None:
        busy = Refused("busy", "A run is being started in `%s`." % self._home.path, "Try again in a minute.")
        self._descriptor = _held(self._home, fcntl.LOCK_EX, busy)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _held(home: Home, how: int, busy: Refused) -> int:
    descriptor = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return descriptor  # a file system without locks; what is removed is looked at again before
        if time.monotonic() > give_up:
            os.close(descriptor)
            raise busy
        time.sleep(0.02)
