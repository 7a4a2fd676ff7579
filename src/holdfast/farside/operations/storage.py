"""What the agent does with the files of runs: which go home, how much there is, and what may be removed."""

import errno
import json
import os
import stat
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from holdfast.farside.run.liveness import adjudicate, lives_on
from holdfast.farside.run.run_group import group_of
from holdfast.farside.system import kernel
from holdfast.farside.system.digests import sha256
from holdfast.farside.system.files import remove_path, remove_tree, size_freed, unlink, walk, write_whole
from holdfast.farside.system.frames import CHUNK
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.journal import events_there
from holdfast.farside.system.laid_record import read_laid
from holdfast.farside.system.layout import BUILD_BYTE, JOURNAL, RESERVE, USE_BYTE, Home, relative_parts
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.nofollow import allow_below, open_below, readlink_below
from holdfast.farside.system.own_files import files_above, outputs, own_files, since_of
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import ABOVE, WORK, WorkingTree, tree_of

_STEADY = 2.0
"""Seconds after which a change that follows gets another time than the one before, on any file system."""

_OUTPUTS = WORK + "/outputs"
Message = Dict[str, Any]


def list_files(home: Home, message: Message, beat: Callable[[], None]) -> Tuple[List[List[Any]], List[str]]:
    """`[path, kind, size, time of change in ns, link target, is executable]` of what the run keeps in its folders
    `roots` (`work/outputs`, `uploads`; of `work` what it wrote elsewhere in the project, of `above` what it wrote
    beside it), and what could not be looked at or cannot travel. A root that is not there is empty; one that is a link
    leads elsewhere and is not followed. Paths are those of `working_tree`. `beat`: as for `walk`."""
    found: List[List[Any]] = []
    problems: List[str] = []
    tree = tree_of(_folder(home, message))
    for name in message["roots"]:
        if _is_linked(tree, WORK if name == ABOVE else name, problems):
            continue
        for place, path, status in _entries(tree, name, problems, beat):
            if stat.S_ISLNK(status.st_mode):
                target = _target(tree.folder, tree.path_of(place))
                if target is not None:
                    found.append([place, "l", 0, status.st_mtime_ns, target, False])
            elif stat.S_ISREG(status.st_mode):
                is_executable = bool(status.st_mode & stat.S_IXUSR)
                found.append([place, "f", status.st_size, status.st_mtime_ns, "", is_executable])
            else:
                problems.append("`%s` is neither a file nor a folder: not fetched." % path)
    return found, list(dict.fromkeys(problems))


def _entries(
    tree: WorkingTree, root: str, problems: List[str], beat: Callable[[], None]
) -> List[Tuple[str, str, os.stat_result]]:
    """The name for those who ask, the path for people, and what the disk says."""
    if root == _OUTPUTS:
        seen = outputs(tree, read_laid(tree.folder), problems, beat)
        return [(root + "/" + path, path, status) for path, status in seen]
    if root not in (WORK, ABOVE):
        top = os.path.join(tree.folder, *relative_parts(tree.path_of(root)))
        return [(root + "/" + path, path, status) for path, status in walk(top, problems, beat)]
    since = since_of(tree.folder)
    if since is None:
        return []
    if root == WORK:
        found = own_files(tree.project, since, problems, beat)
        return [(WORK + "/" + path, path, status) for path, status in found]
    found = files_above(tree, since, problems, beat)
    return [(tree.above(path), tree.from_project(path), status) for path, status in found]


def _is_linked(tree: WorkingTree, name: str, problems: List[str]) -> bool:
    """Whether there is a link in the place of that folder, or of one above it, below the run's."""
    parts = relative_parts(tree.path_of(name))
    for count in range(1, len(parts) + 1):
        place = "/".join(parts[:count])
        target = _target(tree.folder, place)
        if target is not None:
            problems.append("`%s` is a link to `%s`: not fetched." % (place, target))
            return True
    return False


def _target(folder: str, path: str) -> Optional[str]:
    """Where the link at `path` leads, by its own words; None where there is no link."""
    try:
        return readlink_below(folder, path)
    except OSError:
        return None


def link(home: Home, message: Message) -> Dict[str, Any]:
    """Bring one file home on the same machine: of an ended run as a hard link where the disk is the same, else as a
    copy.

    The near side names the destination; it exists only when it is whole."""
    destination = str(message["destination"])
    part = os.path.join(os.path.dirname(destination), ".fetch-%d-%s" % (os.getpid(), os.urandom(4).hex()))
    source = _opened(tree_of(_folder(home, message)), message, message["path"])
    try:
        ended = bool(message.get("ended"))
        if not ended or not _linked(source, part):
            _copy(source, part, ended)
        os.rename(part, destination)
        return {"size": os.fstat(source).st_size}
    except OSError as error:
        unlink(part)
        raise Refused("destination", "%s: %s" % (destination, error.strerror))
    finally:
        os.close(source)


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
    if not os.path.lexists(folder):
        return {"removed": 0}
    adjudicate(folder)
    if lives_on(folder):
        raise Refused(
            "living", "The run `%s` is still alive." % message["run"], "holdfast cancel -r %s" % pasted(message["run"])
        )
    group_of(events_there(os.path.join(folder, JOURNAL))).remove()  # where it was killed before it could do so
    size = size_freed(folder)
    remove_path(folder)
    return {"removed": size}


def _remove_environment(path: str) -> Dict[str, Any]:
    if not os.path.isdir(path):
        return {"removed": 0}
    descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        is_free = kernel.lock(descriptor, BUILD_BYTE) and kernel.lock(descriptor, USE_BYTE)
        lost = LostLocks()
        if not is_free or any(lost.holder(path + ".lock", byte) is not None for byte in (BUILD_BYTE, USE_BYTE)):
            raise Refused("living", "The environment `%s` is in use by a run or a shell." % os.path.basename(path))
        size = size_freed(path)
        remove_tree(path)
    finally:
        os.close(descriptor)
    return {"removed": size}


def _folder(home: Home, message: Message) -> str:
    folder = home.run(message["project"], message["run"])
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % message["run"])
    return folder


def _opened(tree: WorkingTree, message: Message, name: str) -> int:
    """A descriptor of a file of the run. No link is followed, wherever it stands below the run's folder and whenever it
    was put there. The script may have taken away its own right to read what it wrote: it is the user's all the same."""
    path = tree.path_of(name)
    try:
        try:
            return open_below(tree.folder, path)
        except PermissionError:
            allow_below(tree.folder, path, stat.S_IRUSR)
            return open_below(tree.folder, path)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.ENOENT):
            raise
        problems: List[str] = []
        if _is_linked(tree, name, problems):
            raise Refused("refused", problems[0]) from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            text = "The run `%s` has no file `%s` on its host." % (message["run"], name)
            raise Refused("not-found", text) from error
        raise Refused("refused", "`%s` is not a file." % name) from error


def _linked(source: int, target: str) -> bool:
    """Of what is open, whatever has its name by now."""
    try:
        # Only with a descriptor does Python follow the link of /proc.
        os.link("/proc/self/fd/%d" % source, target, src_dir_fd=source, follow_symlinks=True)
    except OSError:
        return False
    return True


def _copy(source: int, target: str, ended: bool) -> None:
    """The copy has the time of its source, by which a later look knows that it is the same. One of a file that may
    still be written to in this moment has its own."""
    with os.fdopen(os.dup(source), "rb") as reader, open(target, "xb") as writer:
        before = os.fstat(source)
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
    _folder(home, message)
    files = [(path, int(offset), str(digest)) for path, offset, digest in message["files"]]
    for path, _, _ in files:
        relative_parts(path)
    return files


def stream(home: Home, message: Message, files: List[File], beat: Callable[[], None]) -> Iterator[Frame]:
    """Of each file `piece`s (or `packed` ones) in order, then `whole` with its digest; or `failed` with the reason. A
    file that is written to meanwhile is sent as long as it was when it was opened. `beat` is called all the time while
    nothing is sent."""
    tree: Optional[WorkingTree] = None
    for path, offset, digest in files:
        about = {"run": message["run"], "file": path}
        try:
            tree = tree or tree_of(_folder(home, message))
            descriptor = _opened(tree, message, path)
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
