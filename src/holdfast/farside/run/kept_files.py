"""What a run's owners do about cleaners of /tmp and /scratch. They make files that are gone again, from what they have
open, and give those that are there a new time."""

import os
import signal
import stat
from typing import Dict, Iterator, Optional, Set

from holdfast.farside.system import kernel
from holdfast.farside.system.files import is_at, names_in, renewed
from holdfast.farside.system.folders import walked
from holdfast.farside.system.held_lock import HeldLock
from holdfast.farside.system.journal import read_events
from holdfast.farside.system.layout import (
    CONTAINER,
    ENVIRONMENT,
    GPU_FACTS,
    JOURNAL,
    MARKER,
    OUTPUT,
    OWNER,
    SHIPPED,
    Home,
)
from holdfast.farside.system.own_files import since_of
from holdfast.farside.system.ownership import make_private

EVERY = 600.0
"""Seconds between looks at the run's own files."""
TREES_EVERY = 36
"""Looks between those at all that the run uses, which may be many files."""
_NAME = "hf-touching"
_HIGHEST = 1 << 16
"""More descriptors than a guardian ever has."""
_FILES = (
    *("plan.json", "submission.json", "configuration.json", "bound.json"),
    *(OWNER, ENVIRONMENT, GPU_FACTS, CONTAINER),
)
_FOLDERS = ("metrics", "uploads")


class KeptFiles:
    """The guardian's part. Its supervisor keeps what it writes itself."""

    def __init__(self, home: Home, folder: str, lock: HeldLock) -> None:
        self._home, self._folder, self._lock = home, folder, lock
        self._held: Dict[str, int] = {}
        self._looks = 0
        self._walker: Optional[int] = None

    def keep(self) -> None:
        """A disk that is full, or gone, is no reason to end."""
        try:
            if not os.path.exists(os.path.join(self._home.path, MARKER)):
                self._home.make()
            for name in ("", *_FOLDERS):
                make_private(os.path.join(self._folder, name))
        except OSError:
            pass
        self._lock.keep()
        self.hold()
        self._touch_own()
        if self._looks % TREES_EVERY == TREES_EVERY - 1:
            self._touch_all()
        self._looks += 1

    def hold(self) -> None:
        """Have the files open from which they can be made again, and make again those that are gone."""
        for name in _FILES:
            self._keep_file(name)

    def _keep_file(self, name: str) -> None:
        path = os.path.join(self._folder, name)
        held = self._held.get(name)
        try:
            if held is not None and not os.path.lexists(path):
                self._held[name] = renewed(held, path)
            elif held is None or not is_at(path, held):
                new = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                self._held[name] = new
                if held is not None:
                    os.close(held)
        except OSError:
            pass  # it is not there yet, or there is no room: the next look tries again

    def _touch_own(self) -> None:
        """Holdfast's own files of the run, and the folders above it."""
        paths = [os.path.join(self._folder, name) for name in names_in(self._folder)] + [self._folder]
        above = os.path.dirname(self._folder)
        while len(above) >= len(self._home.path):
            paths.append(above)
            above = os.path.dirname(above)
        for path in [*paths, self._home.marker()]:
            if os.path.basename(path) == OUTPUT:
                kernel.touch_read(path)  # when it was written to says when the script spoke
                continue
            try:
                os.utime(path, follow_symlinks=False)
            except OSError:
                continue

    def _touch_all(self) -> None:
        """In a process of its own: on a network file system that may take long, or for ever. Then it is not joined by
        another."""
        if self._walker is not None:
            return
        self._walker = os.fork()
        if self._walker:
            return
        try:
            os.closerange(3, _HIGHEST)  # a lease of a GPU lasts as long as anything has it open
            kernel.set_name(_NAME)
            kernel.die_with_parent(signal.SIGKILL, os.getppid())
            os.nice(19)
            touch_run(self._folder)
            for path in self._trees():
                touch_tree(path)
        finally:
            os._exit(0)

    def _trees(self) -> Iterator[str]:
        """What the run uses besides its own folder, where a cleaner might take it. What the user keeps in shared
        folders may be millions of files, and is left alone."""
        for event in read_events(os.path.join(self._folder, JOURNAL)):
            if event["e"] == "environment":
                yield str(event.get("path"))
        for path in (SHIPPED, self._home.pythons(), self._home.tools()):
            if path.startswith(self._home.path + os.sep):
                yield path

    def stop(self) -> None:
        """Ends what goes on beside this process, without waiting: a dead network disk may hold it for ever."""
        if self._walker is not None:
            os.kill(self._walker, signal.SIGKILL)  # not reaped, or the guardian would have told

    def own(self) -> Set[int]:
        """What goes on beside this process, which is nothing of the run's."""
        return set() if self._walker is None else {self._walker}

    def ended(self, pid: int) -> None:
        """The guardian has reaped this one."""
        if pid == self._walker:
            self._walker = None


def touch_run(folder: str) -> None:
    """As `touch_tree`, for a run. What it was given in its working folder is read: to set a time of it would be a
    change, by which `own_files` tells what the run wrote."""
    since = since_of(folder)
    touch_tree(folder, os.path.join(folder, "work"), float("inf") if since is None else since)


def touch_tree(root: str, given: Optional[str] = None, since: float = 0) -> None:
    """All below it counts as read just now; when it was changed stays as it is, by which others tell what is new. Files
    in the folder `given` that were changed before `since` are only read."""
    kernel.touch_read(root)
    for folder, folders, names in walked(root):
        is_given = given is not None and (folder + os.sep).startswith(given + os.sep)
        for path in (os.path.join(folder, name) for name in folders + names):
            if not is_given or not _is_read(path, since):
                kernel.touch_read(path)


def _is_read(path: str, since: float) -> bool:
    """True for a file or link that was changed before `since`, which is read now. Disks that keep no time of reading
    leave it as it is."""
    try:
        status = os.lstat(path)
        if status.st_ctime_ns >= since or stat.S_ISDIR(status.st_mode):
            return False
        if stat.S_ISLNK(status.st_mode):
            os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.read(descriptor, 1)
            finally:
                os.close(descriptor)
    except OSError:
        pass  # it went meanwhile, or is closed to this account
    return True
