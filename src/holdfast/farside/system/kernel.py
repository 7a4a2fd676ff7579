"""What the far side asks of Linux that Python has no call for: prctl, inotify, the boot id, record locks."""

import ctypes
import errno
import fcntl
import os
import struct
from typing import Dict, Optional

_SET_PDEATHSIG, _SET_NAME, _SET_CHILD_SUBREAPER = 1, 15, 36
_FLOCK = struct.Struct("hhqqi4x")
_IN_MODIFY, _IN_MOVED_TO, _IN_CREATE = 0x2, 0x80, 0x100
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_UTIME_NOW, _UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
_TOUCHED = struct.pack("@llll", 0, _UTIME_NOW, 0, _UTIME_OMIT)
"""Two `timespec`, whose numbers have the size of C's `long`."""

_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Orphans of this process's descendants become its children, so that none can hide by a double fork."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(signal_number: int, parent: int) -> None:
    """Ask for a signal when the parent dies; end now if it died before this was asked."""
    _libc.prctl(_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(127)


def set_name(name: str) -> None:
    """The short name in `ps` and `top`."""
    _libc.prctl(_SET_NAME, name.encode("ascii")[:15], 0, 0, 0)


def boot_id() -> str:
    """Changes when the machine restarts; the same inside containers. `HOLDFAST_BOOT_ID` stands in for it in tests."""
    pretended = os.environ.get("HOLDFAST_BOOT_ID")
    if pretended:
        return pretended
    try:
        with open("/proc/sys/kernel/random/boot_id") as source:
            return source.read().strip()
    except OSError:
        return ""


def pid_namespace() -> int:
    """Two processes see each other in /proc if this is the same for both; 0 where it cannot be told."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def touch_read(path: str) -> bool:
    """Lets a file count as read just now, and leaves the time of its last change. A link is not followed. Returns
    whether that worked. `os.utime` would set both times, and undo a change that comes in between."""
    done: int = _libc.utimensat(_AT_FDCWD, os.fsencode(path), _TOUCHED, _AT_SYMLINK_NOFOLLOW)
    return done == 0


def lock(descriptor: int, byte: int, shared: bool = False) -> bool:
    """Take a record lock on one byte, without waiting. It is gone within a millisecond of this process's death,
    whatever its children inherited; closing any descriptor of the same file in this process drops it too."""
    try:
        fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, 1, byte, os.SEEK_SET)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def unlock(descriptor: int, byte: int) -> None:
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, byte, os.SEEK_SET)


def lock_place(descriptor: int) -> Dict[str, int]:
    """Which file a lock is held on, and from which pid namespace: what another process needs to judge its absence."""
    return {"lock": os.fstat(descriptor).st_ino, "namespace": pid_namespace()}


def lock_holder(path: str, byte: int) -> Optional[int]:
    """The pid of the process that holds the byte, without disturbing it; None when no process does, 0 when it is on
    another host or outside this pid namespace. None too for a file that is gone, whose lock may be held:
    `lost_locks.holder` finds that."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if answer[0] == fcntl.F_UNLCK else max(0, answer[4])


class Watch:
    """Wakes when something in a folder changes. Without inotify (128 instances per user) it never wakes: callers
    poll too."""

    def __init__(self) -> None:
        self.descriptor = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)

    def add(self, folder: str) -> None:
        if self.descriptor >= 0:
            _libc.inotify_add_watch(self.descriptor, os.fsencode(folder), _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE)

    def drain(self) -> None:
        try:
            while os.read(self.descriptor, 65536):
                pass
        except BlockingIOError:
            pass

    @property
    def works(self) -> bool:
        return bool(self.descriptor >= 0)
