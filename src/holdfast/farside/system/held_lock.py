"""A lock that its holder takes again after a cleaner of /tmp or /scratch took the file."""

import os

from holdfast.farside.system import kernel
from holdfast.farside.system.files import is_at


class HeldLock:
    """One byte of the file at `path`, held by the open `descriptor`, and of the file that takes its place."""

    def __init__(self, path: str, byte: int, descriptor: int, shared: bool = False) -> None:
        self.descriptor = descriptor
        self._path, self._byte, self._is_shared = path, byte, shared

    def keep(self) -> None:
        """Raises nothing. Another process may hold the new file for a moment, or the disk be full: then the next look
        brings it."""
        if is_at(self._path, self.descriptor):
            return
        try:
            new = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            if kernel.lock(new, self._byte, self._is_shared):
                new, self.descriptor = self.descriptor, new
        except OSError:
            pass  # a network disk that has no locks to give
        finally:
            os.close(new)
