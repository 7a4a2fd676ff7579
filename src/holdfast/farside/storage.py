"""What the agent does with stored files: objects that arrive, files that go home, and what may be removed."""

import hashlib
import os
import stat
import tempfile
from typing import Any, Dict, List

from holdfast.farside import kernel
from holdfast.farside.files import find_object, remove_tree, walk
from holdfast.farside.following import adjudicate, is_alive
from holdfast.farside.frames import CHUNK
from holdfast.farside.journal import Journal
from holdfast.farside.layout import BUILD_BYTE, JOURNAL, USE_BYTE, Home, object_path, relative_parts
from holdfast.farside.refusal import Refused

Message = Dict[str, Any]


def missing(home: Home, message: Message) -> List[str]:
    """Which of the digests are in none of the stores: this host's own and those that the message names."""
    stores = [home.objects()] + [str(store) for store in message.get("stores", [])]
    return [digest for digest in message["digests"] if find_object(stores, digest) is None]


def put(home: Home, message: Message, body: bytes) -> Dict[str, Any]:
    """Store one object, whole or in pieces (`offset`, `more`). Only what hashes to its name becomes visible."""
    final = object_path(home.objects(), message["digest"])
    if os.path.exists(final):
        return {"stored": True}
    os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
    offset, more = int(message.get("offset", 0)), bool(message.get("more"))
    part = "%s.part-%d" % (final, os.getpid())  # pieces of one object come over one connection
    with open(part, "r+b" if offset else "wb") as target:
        target.seek(offset)
        target.write(body)
    if more:
        return {"stored": False}
    if _digest(part) != message["digest"]:
        os.unlink(part)
        raise Refused("damaged", "What arrived as `%s` is something else." % message["digest"])
    os.chmod(part, 0o444)
    os.rename(part, final)
    return {"stored": True}


def list_files(home: Home, message: Message) -> List[List[Any]]:
    """`[path, kind, size, link target]` of what the run keeps in `root` (`work/outputs`, `uploads`, …)."""
    root = _inside(home, message, message["root"])
    found = []
    for path, status in walk(root):
        if stat.S_ISLNK(status.st_mode):
            found.append([path, "l", 0, os.readlink(os.path.join(root, path))])
        elif stat.S_ISREG(status.st_mode):
            found.append([path, "f", status.st_size, ""])
    return found


def fetch(home: Home, message: Message) -> bytes:
    """A piece of a file of the run; an empty one at its end."""
    source = _inside(home, message, message["path"])
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return os.pread(descriptor, CHUNK, int(message["offset"]))
    finally:
        os.close(descriptor)


def link(home: Home, message: Message) -> Dict[str, Any]:
    """Bring one file of an ended run home on the same machine: a hard link where the disk is the same, else a copy.

    The near side names the destination; it exists only when it is whole."""
    source = _inside(home, message, message["path"])
    folder = home.run(message["project"], message["run"])
    destination = str(message["destination"])
    status = os.lstat(source)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("refused", "`%s` is not a file." % message["path"])
    part = tempfile.mktemp(prefix=".fetch-", dir=os.path.dirname(destination))  # noqa: S306 # linked, not opened: EEXIST is an error
    if is_alive(folder) or not _linked(source, part):
        _copy(source, part)
    os.rename(part, destination)
    return {"size": status.st_size}


def usage(home: Home, message: Message) -> Dict[str, Any]:
    """What is stored here: runs with size and state, environments with size and whether one is in use."""
    runs = []
    for project in _names(home.runs()):
        if message.get("project") not in (None, project):
            continue
        for run in _names(os.path.join(home.runs(), project)):
            folder = os.path.join(home.runs(), project, run)
            if run.startswith("."):
                continue
            adjudicate(folder)
            ended = Journal(os.path.join(folder, JOURNAL)).ended() is not None
            runs.append([project, run, _size(folder), "ended" if ended and not is_alive(folder) else "living"])
    environments = []
    for name in _names(home.environments()):
        path = os.path.join(home.environments(), name)
        if os.path.isdir(path) and ".removing-" not in name:
            used = kernel.lock_holder(path + ".lock", USE_BYTE) is not None
            when = os.path.getmtime(path + ".lock") if os.path.exists(path + ".lock") else 0
            environments.append([name, _size(path), "used" if used else "idle", when])
    return {"runs": runs, "environments": environments}


def remove(home: Home, message: Message) -> Dict[str, Any]:
    """Delete an ended run's folder, or an environment nobody uses. Gone already is success; a living one is refused."""
    if "environment" in message:
        return _remove_environment(home.environment(message["environment"]))
    folder = home.run(message["project"], message["run"])
    if not os.path.isdir(folder):
        return {"removed": 0}
    adjudicate(folder)
    if is_alive(folder):
        raise Refused(
            "living", "The run `%s` is still alive." % message["run"], "holdfast cancel -r %s" % message["run"]
        )
    size = _size(folder)
    remove_tree(folder)
    return {"removed": size}


def _remove_environment(path: str) -> Dict[str, Any]:
    if not os.path.isdir(path):
        return {"removed": 0}
    descriptor = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not kernel.lock(descriptor, BUILD_BYTE) or not kernel.lock(descriptor, USE_BYTE):
            raise Refused("living", "The environment `%s` is in use by a run." % os.path.basename(path))
        size = _size(path)
        remove_tree(path)
    finally:
        os.close(descriptor)
    return {"removed": size}


def _inside(home: Home, message: Message, path: str) -> str:
    """A path of the run's folder that no link leads out of."""
    folder = home.run(message["project"], message["run"])
    full = os.path.join(folder, *relative_parts(path))
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % message["run"])
    if os.path.realpath(os.path.dirname(full)) != os.path.join(os.path.realpath(folder), *path.split("/")[:-1]):
        raise Refused("refused", "`%s` leads out of the run's folder." % path)
    if not os.path.lexists(full):
        raise Refused("not-found", "The run `%s` has no file `%s` on its host." % (message["run"], path))
    return full


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _size(path: str) -> int:
    return sum(status.st_size for _, status in walk(path))


def _digest(path: str) -> str:
    total = hashlib.sha256()
    with open(path, "rb") as source:
        for block in iter(lambda: source.read(CHUNK), b""):
            total.update(block)
    return total.hexdigest()


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as reader, open(target, "xb") as writer:
        for block in iter(lambda: reader.read(CHUNK), b""):
            writer.write(block)
