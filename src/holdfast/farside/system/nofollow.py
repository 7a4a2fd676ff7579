"""Files in folders that a script can write to, opened without following links: one may stand where a file was."""

import errno
import os
import stat
from typing import Callable, Iterator, List, NamedTuple, Tuple

from holdfast.farside.system.layout import relative_parts

_FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
"""Windows has none of these, and opens no folder: a client uses `holdfast.regular_files` to open files."""
_LONGEST = 4000
"""Bytes of a path; what lies deeper cannot be named by any program."""
_DEEPEST = 200
"""Folders on the way to a file that is listed."""
_MOST_OPEN = 32
"""Folders that are open at once while a tree is removed."""

Entry = Tuple[str, os.stat_result]
_Removed = NamedTuple("_Removed", [("name", str), ("descriptor", int), ("names", List[str])])
"""A folder that is being removed, open, and the names that are left in it."""


def open_below(folder: str, path: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A descriptor of the regular file at `path` below `folder`, which belongs to this account. Raises OSError where a
    part of `path`, or `folder` itself, is a link, and for anything but a regular file: it never waits for a FIFO."""
    parts = relative_parts(path)
    return _opened(open_folder(folder, "/".join(parts[:-1])), os.path.join(folder, path), flags, mode)


def open_plain(path: str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """As `open_below`, for a file directly in a folder that is known to be this account's."""
    return _opened(os.open(os.path.dirname(path), _FOLDER), path, flags, mode)


def open_folder(folder: str, path: str = "") -> int:
    """A descriptor of the folder at `path` below `folder`, or of that one itself; the same holds for links."""
    descriptor = os.open(folder, _FOLDER)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "belongs to another account", folder)
        for part in relative_parts(path) if path else []:
            above, descriptor = descriptor, os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(above)
    except OSError as error:
        os.close(descriptor)
        raise _at(error, folder, path) from None
    return descriptor


def describe(error: OSError) -> str:
    """What stands in the way, in a few words: a link's error number says less."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if path and os.path.islink(path):
        return "`%s` is a link" % path
    reason = error.strerror or str(error)
    return "`%s`: %s" % (path, reason) if path else reason


def read_below(folder: str, path: str, most: int) -> bytes:
    """What is in the file, which `open_below` opens. Raises OSError (EFBIG) for one that has more than `most` bytes."""
    return _all(open_below(folder, path), os.path.join(folder, path), most)


def read_plain(path: str, most: int) -> bytes:
    """As `read_below`, for a file directly in a folder that is known to be this account's."""
    return _all(open_plain(path), path, most)


def read_regular(path: str, most: int) -> bytes:
    """As `read_plain`, for a file anywhere, as a user may have it: the way there may lead over links."""
    return _all(_regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), path, most)


def beginning(path: str, most: int) -> bytes:
    """The first bytes of a file anywhere, as `read_regular` opens it. Raises OSError."""
    with os.fdopen(_regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), "rb") as source:
        return source.read(most)


def stat_below(folder: str, path: str) -> os.stat_result:
    """As `lstat`: of a link the link's own. Raises OSError where a folder on the way is one."""
    parts = relative_parts(path)
    parent = open_folder(folder, "/".join(parts[:-1]))
    try:
        return os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise _at(error, folder, path) from None
    finally:
        os.close(parent)


def readlink_below(folder: str, path: str) -> str:
    """What the link at `path` says. Raises OSError (EINVAL) for anything else."""
    parts = relative_parts(path)
    parent = open_folder(folder, "/".join(parts[:-1]))
    try:
        return os.readlink(parts[-1], dir_fd=parent)
    finally:
        os.close(parent)


def allow_below(folder: str, path: str, rights: int) -> None:
    """Give this account `rights` to the file or folder at `path` again: a script may have taken them from itself. A
    link is left as it is."""
    parts = relative_parts(path)
    parent = open_folder(folder, "/".join(parts[:-1]))
    try:
        _allow(parent, parts[-1], rights)
    finally:
        os.close(parent)


def walk_below(
    folder: str,
    path: str,
    note: Callable[[OSError], None],
    beat: Callable[[], None] = lambda: None,
    enters: Callable[[str], bool] = lambda place: True,
) -> Iterator[Entry]:
    """Files and links below the folder `path` of `folder`, by their paths from there. No link is followed. A folder
    that the script closed to itself is opened again. `note` gets what cannot be looked at, or lies too deep; `beat` is
    called all the time; `enters`: whether a folder, by its path, is looked into."""
    waiting = [""]
    while waiting:
        place = waiting.pop()
        inner = "/".join(each for each in (path, place) if each)
        try:
            descriptor = open_folder(folder, inner)
        except OSError as error:
            note(error)
            continue
        try:
            for name, status in _entries(descriptor, os.path.join(folder, inner), note):
                beat()
                below = "%s/%s" % (place, name) if place else name
                if not stat.S_ISDIR(status.st_mode):
                    yield below, status
                elif not enters(below):
                    continue
                elif len(below) > _LONGEST:
                    note(OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), below))
                elif below.count("/") >= _DEEPEST:
                    note(OSError(errno.ENAMETOOLONG, "it lies more than %d folders deep" % _DEEPEST, below))
                else:
                    if status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                        _allow(descriptor, name, stat.S_IRWXU)
                    waiting.append(below)
        except OSError as error:
            note(_at(error, folder, inner))
        finally:
            os.close(descriptor)


def remove_at(parent: int, name: str) -> None:
    """Delete a file, a link, or a folder with all that is in it, however deep. `parent` is a descriptor of the folder
    that has it. Gone already is success."""
    if _is_unlinked(parent, name):
        return
    chain: List[_Removed] = []
    _enter(chain, parent, name)
    try:
        while chain:
            folder = chain[-1]
            if not folder.names:
                os.close(chain.pop().descriptor)
                _remove_empty(chain[-1].descriptor if chain else parent, folder.name)
                continue
            each = folder.names.pop()
            if not _is_unlinked(folder.descriptor, each):
                new = os.urandom(8).hex()
                if len(chain) >= _MOST_OPEN and _is_moved(folder.descriptor, each, chain[0].descriptor, new):
                    chain[0].names.append(new)  # so that no chain of open folders is as long as the tree is deep
                else:
                    _enter(chain, folder.descriptor, each)
    finally:
        for folder in chain:
            os.close(folder.descriptor)


def _enter(chain: List[_Removed], parent: int, name: str) -> None:
    _allow(parent, name, stat.S_IRWXU)
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return
    try:
        chain.append(_Removed(name, descriptor, os.listdir(descriptor)))
    except OSError:
        os.close(descriptor)
        raise


def _is_unlinked(parent: int, name: str) -> bool:
    """False for a folder, which is left as it is."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise
        return False
    return True


def _is_moved(parent: int, name: str, top: int, new: str) -> bool:
    """Some file systems cannot do so, as layers of a container's."""
    _allow(parent, name, stat.S_IRWXU)
    try:
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=top)
    except OSError:
        return False
    return True


def _remove_empty(parent: int, name: str) -> None:
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        pass


def _opened(parent: int, path: str, flags: int, mode: int) -> int:
    try:
        # Without O_TRUNC: nothing is emptied before it is known to be a file.
        wanted = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.basename(path), wanted, mode, dir_fd=parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(parent)
    _regular(descriptor, path)
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def _regular(descriptor: int, path: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def _all(descriptor: int, path: str, most: int) -> bytes:
    with os.fdopen(descriptor, "rb") as source:
        data = source.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "larger than %d bytes" % most, path)
    return data


def _entries(descriptor: int, folder: str, note: Callable[[OSError], None]) -> List[Entry]:
    found = []
    for name in os.listdir(descriptor):
        try:
            found.append((name, os.stat(name, dir_fd=descriptor, follow_symlinks=False)))
        except FileNotFoundError:
            continue
        except OSError as error:
            note(_at(error, folder, name))
    return found


def _allow(parent: int, name: str, rights: int) -> None:
    """By a descriptor that needs no right to what it stands for: `chmod` of a path would follow a link."""
    try:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except (OSError, AttributeError):  # macOS has no such descriptors
        return
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & rights != rights:
            os.chmod("/proc/self/fd/%d" % descriptor, stat.S_IMODE(status.st_mode) | rights)
    except OSError:
        pass  # it is another account's; the attempt to open it says so
    finally:
        os.close(descriptor)


def _at(error: OSError, folder: str, path: str) -> OSError:
    """With the whole path, which errors of calls that take a descriptor do not have."""
    return OSError(error.errno, error.strerror, os.path.join(folder, path) if path else folder)
