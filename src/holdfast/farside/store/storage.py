"""What the agent does with the files of runs: which go home, how much there is, and what may be removed."""

import json
import os
import stat
import time
from typing import Any, Callable, Dict, List, Tuple

from holdfast.farside import kernel
from holdfast.farside.frames import CHUNK
from holdfast.farside.layout import BUILD_BYTE, RESERVE, USE_BYTE, Home, relative_parts
from holdfast.farside.refusal import Refused
from holdfast.farside.run.files import remove_tree, walk
from holdfast.farside.run.subscription import adjudicate, lives_on
from holdfast.farside.store.objects import remove_stale_parts

STEADY = 2.0
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
        _unlink(part)
        raise Refused("destination", "%s: %s" % (destination, error.strerror))
    return {"size": status.st_size}


def write_request(folder: str, name: str, request: Dict[str, Any]) -> None:
    """A request to the supervisor, whole or not there. On a full disk it gets the reserve."""
    path = os.path.join(folder, name)
    for attempt in (1, 2):
        try:
            with open(path + ".new", "w") as target:
                json.dump(request, target)
            os.rename(path + ".new", path)
            return
        except OSError:
            if attempt == 2:
                raise
            _unlink(os.path.join(folder, RESERVE))


def environments(home: Home) -> List[str]:
    """Names of those that are here, without hidden ones: those are being removed."""
    folder = home.environments()
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [name for name in names if not name.startswith(".") and os.path.isdir(os.path.join(folder, name))]


def remove(home: Home, message: Message) -> Dict[str, Any]:
    """Delete an ended run's folder, or an environment nobody uses. Gone already is success; a living one is refused."""
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
    size = _size(folder)
    remove_tree(folder)
    _remove_leftovers(os.path.dirname(folder))
    remove_stale_parts(home)
    return {"removed": size}


def _remove_leftovers(folder: str) -> None:
    """What was being made or removed there when its process died, a day ago or more."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith((".new-", ".removing-")) and time.time() - os.lstat(path).st_mtime > 86400:
            remove_tree(path)


def _remove_environment(path: str) -> Dict[str, Any]:
    if not os.path.isdir(path):
        return {"removed": 0}
    descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not kernel.lock(descriptor, BUILD_BYTE) or not kernel.lock(descriptor, USE_BYTE):
            raise Refused("living", "The environment `%s` is in use by a run or a shell." % os.path.basename(path))
        size = _size(path)
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


def open_file(path: str) -> int:
    """The script may have taken away its own right to read what it wrote; it is the user's all the same."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe in its place must not stop us
    try:
        return os.open(path, flags)
    except PermissionError:
        os.chmod(path, os.stat(path).st_mode | stat.S_IRUSR)
        return os.open(path, flags)


def _size(path: str) -> int:
    """Bytes that removing it would free: a hard link into a cache or home frees nothing."""
    return sum(status.st_size for _, status in walk(path, []) if status.st_nlink == 1)


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _copy(source: str, target: str, ended: bool) -> None:
    """The copy has the time of its source, by which a later look knows that it is the same. One of a file that may
    still be written to in this moment has its own."""
    with os.fdopen(open_file(source), "rb") as reader, open(target, "wb") as writer:
        before = os.fstat(reader.fileno())
        for block in iter(lambda: reader.read(CHUNK), b""):
            writer.write(block)
        if before.st_mode & stat.S_IXUSR:
            mode = stat.S_IMODE(os.fstat(writer.fileno()).st_mode)
            os.fchmod(writer.fileno(), mode | (mode & 0o444) >> 2)
    if ended or time.time() - before.st_mtime > STEADY:
        os.utime(target, ns=(before.st_mtime_ns, before.st_mtime_ns))
