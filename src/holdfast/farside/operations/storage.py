"""What the agent does with the files of runs: which go home, how much there is, and what may be removed."""

import json
import os
import stat
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Tuple

from holdfast.farside.run.liveness import adjudicate, lives_on
from holdfast.farside.system import kernel
from holdfast.farside.system.digests import sha256
from holdfast.farside.system.files import remove_tree, size_freed, unlink, walk, write_whole
from holdfast.farside.system.frames import CHUNK
from holdfast.farside.system.layout import BUILD_BYTE, RESERVE, USE_BYTE, Home, relative_parts
from holdfast.farside.system.refusal import Refused

_STEADY = 2.0
"""Seconds after which a change that follows gets another time than the one before, on any file system."""

Message = Dict[str, Any]


def list_files(home: Home, message: Message, beat: Callable[[], None]) -> Tuple[List[List[Any]], List[str]]:
    """`[path, kind, size, time of change in ns, link target, is executable]` of what the run keeps in its folders
    `roots` (`work/outputs`, `uploads`), and what could not be looked at or cannot travel. A root that is not there is
    empty; one that is a link leads elsewhere and is not followed. `beat`: as for `walk`."""
    found: List[List[Any]] = []
    problems: List[str] = []
    for name in message["roots"]:
        root = inside(home, message, name, must_exist=False)
        if os.path.islink(root):
            problems.append("`%s` is a link to `%s`, outside the run: not fetched." % (name, os.readlink(root)))
            continue
        for path, status in walk(root, problems, beat):
            place = name + "/" + path
            if stat.S_ISLNK(status.st_mode):
                found.append([place, "l", 0, status.st_mtime_ns, os.readlink(os.path.join(root, path)), False])
            elif stat.S_ISREG(status.st_mode):
                is_executable = bool(status.st_mode & stat.S_IXUSR)
                found.append([place, "f", status.st_size, status.st_mtime_ns, "", is_executable])
            else:
                problems.append("`%s` is neither a file nor a folder: not fetched." % path)
    return found, problems


def link(home: Home, message: Message) -> Dict[str, Any]:
    """Bring one file home on the same machine: of an ended run as a hard link where the disk is the same, else as a
    copy.

    The near side names the destination; it exists only when it is whole."""
    source = inside(home, message, message["path"])
    destination = str(message["destination"])
    status = os.lstat(source)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("refused", "`%s` is not a file." % message["path"])
    part = os.path.join(os.path.dirname(destination), ".fetch-%d" % os.getpid())
    try:
        ended = bool(message.get("ended"))
        if not ended or not _linked(source, part):
            _copy(source, part, ended)
        os.rename(part, destination)
    except OSError as error:
        unlink(part)
        raise Refused("destination", "%s: %s" % (destination, error.strerror))
    return {"size": status.st_size}


def write_request(folder: str, name: str, request: Dict[str, Any]) -> None:
    """A request to the supervisor, whole or not there. On a full disk it gets the reserve."""
    path = os.path.join(folder, name)
    for attempt in (1, 2):
        try:
            write_whole(path, json.dumps(request))
            return
        except OSError:
            if attempt == 2:
                raise
            unlink(os.path.join(folder, RESERVE))


def remove(home: Home, message: Message) -> Dict[str, Any]:
    """Delete an ended run's folder, or an unused environment. Gone already is success; a living one is refused."""
    if "environment" in message:
        return _remove_environment(home.environment(message["environment"]))
    folder = home.run(message["project"], message["run"])
    if not os.path.isdir(folder):
        return {"removed": 0}
    adjudicate(folder)
    if lives_on(folder):
        raise Refused(
            "living", "The run `%s` is still alive." % message["run"], "holdfast cancel -r %s" % message["run"]
        )
    size = size_freed(folder)
    remove_tree(folder)
    return {"removed": size}


def _remove_environment(path: str) -> Dict[str, Any]:
    if not os.path.isdir(path):
        return {"removed": 0}
    descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not kernel.lock(descriptor, BUILD_BYTE) or not kernel.lock(descriptor, USE_BYTE):
            raise Refused("living", "The environment `%s` is in use by a run or a shell." % os.path.basename(path))
        size = size_freed(path)
        remove_tree(path)
    finally:
        os.close(descriptor)
    return {"removed": size}


def inside(home: Home, message: Message, path: str, must_exist: bool = True) -> str:
    """A path of the run's folder that no link leads out of."""
    folder = home.run(message["project"], message["run"])
    full = os.path.join(folder, *relative_parts(path))
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % message["run"])
    if os.path.realpath(os.path.dirname(full)) != os.path.join(os.path.realpath(folder), *path.split("/")[:-1]):
        raise Refused("refused", "`%s` leads out of the run's folder." % path)
    if must_exist and not os.path.lexists(full):
        raise Refused("not-found", "The run `%s` has no file `%s` on its host." % (message["run"], path))
    return full


def _open_file(path: str) -> int:
    """The script may have taken away its own right to read what it wrote; it is the user's all the same."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe in its place must not stop us
    try:
        return os.open(path, flags)
    except PermissionError:
        os.chmod(path, os.stat(path).st_mode | stat.S_IRUSR)
        return os.open(path, flags)


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _copy(source: str, target: str, ended: bool) -> None:
    """The copy has the time of its source, by which a later look knows that it is the same. One of a file that may
    still be written to in this moment has its own."""
    with os.fdopen(_open_file(source), "rb") as reader, open(target, "wb") as writer:
        before = os.fstat(reader.fileno())
        for block in iter(lambda: reader.read(CHUNK), b""):
            writer.write(block)
        if before.st_mode & stat.S_IXUSR:
            mode = stat.S_IMODE(os.fstat(writer.fileno()).st_mode)
            os.fchmod(writer.fileno(), mode | (mode & 0o444) >> 2)
    if ended or time.time() - before.st_mtime > _STEADY:
        os.utime(target, ns=(before.st_mtime_ns, before.st_mtime_ns))


_SAMPLE = 1 << 16
_WORTH = 0.9
"""Compression is worth its time where a sample shrinks to less than this part of itself."""

Frame = Tuple[Message, bytes]
File = Tuple[str, int, str]


def wanted(home: Home, message: Message) -> List[File]:
    """The files of the request: path, how many bytes are at home, and their sha256. Refused before anything is sent."""
    folder = home.run(message["project"], message["run"])
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % message["run"])
    files = [(path, int(offset), str(digest)) for path, offset, digest in message["files"]]
    for path, _, _ in files:
        relative_parts(path)
    return files


def stream(home: Home, message: Message, files: List[File], beat: Callable[[], None]) -> Iterator[Frame]:
    """Of each file `piece`s (or `packed` ones) in order, then `whole` with its digest; or `failed` with the reason. A
    file that is written to meanwhile is sent as long as it was when it was opened. `beat` is called all the time while
    nothing is sent."""
    for path, offset, digest in files:
        about = {"run": message["run"], "file": path}
        try:
            descriptor = _open_file(inside(home, message, path))
            try:
                for frame in _pieces(descriptor, about, (offset, digest), beat):
                    yield frame
            finally:
                os.close(descriptor)
        except Refused as refusal:
            yield _failed(about, refusal.kind, refusal.message)
        except FileNotFoundError:
            yield _failed(about, "not-found", "`%s` is not there any more." % path)
        except OSError as error:
            yield _failed(about, "storage", "`%s` cannot be read: %s." % (path, error.strerror))


def _pieces(descriptor: int, about: Message, have: Tuple[int, str], beat: Callable[[], None]) -> Iterator[Frame]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("refused", "`%s` is not a file." % about["file"])
    offset, total = _beginning(descriptor, have, status.st_size, beat)
    first = os.pread(descriptor, _SAMPLE, offset)
    packs = len(first) > 256 and len(zlib.compress(first, 1)) < _WORTH * len(first)
    while offset < status.st_size:
        data = os.pread(descriptor, min(CHUNK, status.st_size - offset), offset)
        if not data:
            break  # it was cut meanwhile; the digest is of what was there
        total.update(data)
        if packs:
            yield dict(about, push="packed", offset=offset), zlib.compress(data, 1)
        else:
            yield dict(about, push="piece", offset=offset), data
        offset += len(data)
    end = {
        "sha256": total.hexdigest(),
        "mtime_ns": status.st_mtime_ns,
        "steady": time.time() - status.st_mtime > _STEADY,
        "executable": bool(status.st_mode & stat.S_IXUSR),
    }
    yield dict(about, push="whole", offset=offset), json.dumps(end).encode("ascii")


def _beginning(descriptor: int, have: Tuple[int, str], size: int, beat: Callable[[], None]) -> Tuple[int, Any]:
    """The offset to send from, and the hash of all before it. It is 0 unless the file begins with what home has."""
    length, digest = have
    total = sha256(size=size)
    place = 0
    while place < length <= size:
        beat()
        data = os.pread(descriptor, min(CHUNK, length - place), place)
        if not data:
            break
        total.update(data)
        place += len(data)
    if place == length and total.hexdigest() == digest:
        return place, total
    return 0, sha256(size=size)


def _failed(about: Message, kind: str, text: str) -> Frame:
    body = json.dumps({"kind": kind, "message": text}).encode("ascii")
    return dict(about, push="failed"), body
