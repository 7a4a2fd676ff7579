"""Files of the host: written whole, listed, walked and removed; the run's own copy of the snapshot."""

import contextlib
import errno
import json
import os
import stat
import time
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Tuple

from holdfast.farside.system import foreign
from holdfast.farside.system.digests import sha256
from holdfast.farside.system.layout import object_path, relative_parts
from holdfast.farside.system.nofollow import Entry, open_folder, read_plain, read_regular, remove_at, walk_below
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.reserved_names import reserved_path

OUTPUTS = "outputs"
REMOVING = ".removing-"
"""How the name of what is being removed begins, until it is gone."""
LARGEST_RECORD = 256 << 20
"""Bytes of a file with JSON that is read: a manifest of a million files has fewer."""
_RENAME = "Rename it in the project, then submit again."
_FICLONE = 0x40049409

Stamp = Tuple[int, int]
"""Size, and time of change in ns."""


def write_whole(path: str, text: str, mode: Optional[int] = None, is_durable: bool = False) -> None:
    """Put `text` at `path`, as `whole` does."""
    with whole(path, mode, is_durable) as target:
        target.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def whole(path: str, mode: Optional[int] = None, is_durable: bool = False) -> Iterator[IO[bytes]]:
    """What is written in the block is at `path` after it: others see the old content or the new one. Where that fails,
    as on a full disk, the old one stays and nothing is left beside it. `mode`: else the umask decides. `is_durable`:
    waits until the disk has it."""
    new = "%s.new-%d-%s" % (path, os.getpid(), os.urandom(4).hex())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, 0o666 if mode is None else mode), "wb") as target:
            if mode is not None:
                os.fchmod(target.fileno(), mode)
            yield target
            if is_durable:
                target.flush()
                os.fsync(target.fileno())
        os.rename(new, path)
    except BaseException:
        unlink(new)
        raise


def is_at(path: str, descriptor: int) -> bool:
    """Whether the open file is the one at `path`, and not one that was removed, or replaced."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False


def renewed(descriptor: int, path: str) -> int:
    """For the only writer of a file that others may remove: puts back at `path` what is open as `descriptor`, before
    what was written there since. Returns the descriptor to go on with, and closes the other; where that fails, as on a
    full disk, it raises OSError and nothing has changed."""
    if is_at(path, descriptor):
        return descriptor
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        there: Optional[int] = os.open(path, flags)
    except FileNotFoundError:
        there = None
    if there is not None and _begins_with(there, descriptor):
        os.close(descriptor)  # another process of the run put it back
        return there
    try:
        with whole(path, 0o600) as target:
            for source in (descriptor,) if there is None else (descriptor, there):
                for block in _blocks(source):
                    target.write(block)
    finally:
        if there is not None:
            os.close(there)
    found = os.open(path, flags)
    os.close(descriptor)
    return found


def have_same_content(one: int, path: str) -> bool:
    """Whether the regular file at `path` holds what the open one does."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size != os.fstat(one).st_size:
        return False
    other = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _begins_with(one, other)
    finally:
        os.close(other)


def _begins_with(one: int, other: int) -> bool:
    place = 0
    for block in _blocks(other):
        if os.pread(one, len(block), place) != block:
            return False
        place += len(block)
    return True


def _blocks(descriptor: int) -> Iterator[bytes]:
    place = 0
    while True:
        block = os.pread(descriptor, 1 << 18, place)
        if not block:
            return
        yield block
        place += len(block)


def unlink(path: str) -> None:
    """Gone already, or not to be removed, is success."""
    try:
        os.unlink(path)
    except OSError:
        pass


def names_in(folder: str, is_strict: bool = False) -> List[str]:
    """Sorted; none where there is no such folder, or one that cannot be read. `is_strict`: raises OSError for the
    latter, whose content must not be taken for none."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        if is_strict:
            raise
        return []


def find_object(stores: List[str], digest: str) -> Optional[str]:
    for store in stores:
        path = object_path(store, digest)
        if os.path.exists(path):
            return path
    return None


def materialise(snapshot: str, stores: List[str], work: str) -> int:
    """Write the snapshot's files below `work`, as copies (or reflinks), never hard links. Returns when the disk says
    that the last of them was changed, in ns; 0 without files."""
    manifest = json.loads(_read_object(stores, snapshot).decode("utf-8"))
    reserved = reserved_path([str(row[0]) for row in manifest["files"]])
    if reserved is not None:
        raise Refused("refused", "`%s` is a name that git or Holdfast keeps for itself." % reserved, _RENAME)
    last = 0
    folders = set()
    clone = True
    links = []
    for path, kind, detail, size in manifest["files"]:
        parts = relative_parts(path)
        target = os.path.join(work, *parts)
        parent = os.path.dirname(target)
        if parent not in folders:
            os.makedirs(parent, exist_ok=True)
            folders.add(parent)
        if kind == "l":
            links.append((target, detail))
            continue
        reader = _open_object(stores, detail)
        if reader is None:
            raise Refused("storage", "The contents of `%s` are missing in the store." % path)
        try:
            clone, digest, stamp = _copy(reader, target, 0o755 if kind == "x" else 0o644, clone)
        finally:
            os.close(reader)
        if digest != detail or stamp[0] != size:
            raise Refused("storage", "The contents of `%s` are damaged in the store." % path)
        last = max(last, stamp[1])
    for target, detail in links:  # last, so that no file is written through a link
        os.symlink(detail, target)
        last = max(last, os.lstat(target).st_ctime_ns)
    os.makedirs(os.path.join(work, OUTPUTS), exist_ok=True)
    return last


def walk(
    root: str,
    problems: List[str],
    beat: Callable[[], None] = lambda: None,
    enters: Callable[[str], bool] = lambda place: True,
) -> List[Entry]:
    """Files and links below `root` by relative path, sorted; links are not followed. A folder that the script closed to
    itself is opened again: it is the user's. What still cannot be looked at is added to `problems`. `beat` is called
    all the time; `enters`: whether a folder, by its path, is looked into."""
    found: List[Entry] = []

    def note(error: OSError) -> None:
        if os.path.lexists(root):
            problems.append("`%s` cannot be looked at: %s." % (error.filename, error.strerror))

    found += walk_below(os.path.dirname(root), os.path.basename(root), note, beat, enters)
    return sorted(found, key=lambda each: each[0])


def _read_object(stores: List[str], digest: str) -> bytes:
    descriptor = _open_object(stores, digest)
    if descriptor is None:
        raise Refused("storage", "The snapshot `%s` is not in the store." % digest)
    with os.fdopen(descriptor, "rb") as source:
        return source.read()


def _open_object(stores: List[str], digest: str) -> Optional[int]:
    for store in stores:
        try:
            return os.open(object_path(store, digest), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue
    return None


def _copy(reader: int, target: str, mode: int, clone: bool) -> Tuple[bool, str, Stamp]:
    """Copy one file; returns whether it is worth trying a reflink for the next one, the digest of what was copied and
    the copy's stamp."""
    total = sha256(size=os.fstat(reader).st_size)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        cloned = clone and reflink(reader, writer)
        while True:
            data = os.read(reader, 1 << 20)
            if not data:
                break
            total.update(data)
            while data and not cloned:
                data = data[os.write(writer, data) :]
        status = os.fstat(writer)
        return cloned, total.hexdigest(), (status.st_size, status.st_ctime_ns)
    finally:
        os.close(writer)


def reflink(reader: int, writer: int) -> bool:
    """Make the empty file `writer` a copy of `reader` that shares its blocks until one of them changes. False where the
    disk cannot."""
    import fcntl

    try:
        fcntl.ioctl(writer, _FICLONE, reader)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        return False
    return True


def remove_tree(path: str) -> None:
    """Delete a folder, also where the script took away its own permissions; links are removed, never followed."""
    folder, name = os.path.split(path)
    aside = name if name.startswith(REMOVING) else "%s%s-%d" % (REMOVING, name, int(time.time() * 1000))
    try:
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        # Whole or gone: a half-removed folder is never seen under its name.
        if aside != name:
            os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
        remove_at(parent, aside)
    except FileNotFoundError:
        return
    finally:
        os.close(parent)


def remove_below(folder: str, path: str) -> None:
    """Delete what is at `path` below a folder that a script can write to. Gone, or behind a link, is success."""
    above, name = os.path.split(path)
    try:
        parent = open_folder(folder, above)
    except (OSError, Refused):
        return
    try:
        remove_at(parent, name)
    except OSError:
        pass  # what is left goes with the environment
    finally:
        os.close(parent)


def remove_path(path: str) -> None:
    """A folder with all that is in it; of a link the link alone. Gone already is success."""
    if os.path.isdir(path) and not os.path.islink(path):
        remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def size_freed(path: str) -> int:
    """Bytes that removing it would free: a hard link into a cache or an environment frees nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    if stat.S_ISDIR(status.st_mode):
        return sum(each.st_size for _, each in walk(path, []) if each.st_nlink == 1)
    return status.st_size if status.st_nlink == 1 else 0


def read_record(path: str) -> Optional[Dict[str, Any]]:
    """As `read_json`, of a file in a run's folder: one that is a link is none."""
    try:
        return _parsed(read_plain(path, LARGEST_RECORD))
    except (OSError, Refused):
        return None


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """An object in a file; None if there is none, or it cannot be read, or is larger than such files are."""
    try:
        return _parsed(read_regular(path, LARGEST_RECORD))
    except (OSError, ValueError):  # a path may be none
        return None


def _parsed(data: bytes) -> Optional[Dict[str, Any]]:
    found = foreign.parsed(data.decode("utf-8", "replace"))
    return found if isinstance(found, dict) else None
