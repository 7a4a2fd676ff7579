"""Contents that arrive: the manifest of a snapshot as what changed since one that is here, small objects in packs,
large ones in pieces. Only what hashes to its name gets it."""

import errno
import json
import os
import struct
import time
import zlib
from typing import Any, Dict, Iterable, List, Optional

from holdfast.farside.system.digests import sha256
from holdfast.farside.system.files import names_in, unlink, whole
from holdfast.farside.system.frames import CHUNK, MAX_BODY
from holdfast.farside.system.layout import Home, object_path
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

STALE = 86400.0
MANIFEST = "manifest"
MANIFEST_HEAD = b'{"format":1,"files":'
_PACKED = struct.Struct(">32sI")
"""Of each object in a pack: its digest and size; the contents follow after all of these."""

Message = Dict[str, Any]
Rows = List[List[Any]]


class Arrivals:
    """What one connection brings, and which snapshots it announced that are not whole yet."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lacking: Dict[str, Optional[Dict[str, int]]] = {}
        """Per snapshot, digest and size of each missing content; None if even the manifest is missing."""

    def prepare(self, message: Message, body: bytes) -> Dict[str, Any]:
        """Announce a snapshot. `base` and a body: its manifest is made here of that one and the difference. Answers
        what the host lacks of it (`lacks`: ranges of its digests in their order), how much of large objects is here
        from a connection that was cut (`parts`), or that it `needs` the manifest."""
        snapshot = message["snapshot"]
        final = object_path(self._home.objects(), snapshot)
        self._lacking[snapshot] = None  # whatever happens below: it must not be started before it is whole
        rows = self._manifest(snapshot, final, message.get("base"), body)
        if rows is None:
            return {"lacks": [], "parts": {}, "needs": MANIFEST}
        os.utime(final, None)  # a young manifest keeps its objects from being removed as unneeded
        sizes = {row[2]: int(row[3]) for row in rows if row[1] != "l"}
        digests = sorted(sizes)
        lacks = [index for index, digest in enumerate(digests) if not self._has(digest, sizes[digest])]
        lacking = self._lacking[snapshot] = {digests[index]: sizes[digests[index]] for index in lacks}
        return {"lacks": _ranges(lacks), "parts": self._parts(lacking), "needs": ""}

    def require(self, snapshot: object) -> None:
        """Refuse to start from a snapshot that was announced over this connection and is not whole. What another
        connection brought meanwhile counts."""
        lacking = self._lacking.get(str(snapshot), {})
        if lacking is None:
            raise Refused("incomplete", "The manifest of the snapshot `%s` is not here." % snapshot)
        for digest in [each for each, size in lacking.items() if self._has(each, size)]:
            del lacking[digest]
        if lacking:
            raise Refused("incomplete", "%d objects of the snapshot `%s` are not here." % (len(lacking), snapshot))

    def pack(self, message: Message, body: bytes) -> Dict[str, Any]:
        """Store many small objects that came as one body."""
        data = _inflate(body) if message.get("z") else body
        count = int(message["count"])
        begin = _PACKED.size * count
        if count < 0 or begin > len(data):
            raise Refused("malformed", "A pack is shorter than its own list.")
        for index in range(count):
            name, size = _PACKED.unpack_from(data, _PACKED.size * index)
            content = data[begin : begin + size]
            begin += size
            digest = name.hex()
            if sha256(content).digest() != name:
                raise _damaged(digest)
            self._store(digest, content)
        return {"stored": count}

    def put(self, message: Message, body: bytes) -> Dict[str, Any]:
        """Store one object, whole or in pieces (`offset`, `more`). What has come stays until a later connection brings
        the rest; two that bring the same at once write the same bytes, and one of them finishes it."""
        digest = message["digest"]
        final = object_path(self._home.objects(), digest)
        offset = int(message.get("offset", 0))
        data = _inflate(body) if message.get("z") else body
        if offset == 0 and not message.get("more"):
            if sha256(data).hexdigest() != digest:
                raise _damaged(digest)
            self._store(digest, data)
            return {"stored": True}
        part = self._part(digest)
        length = offset + len(data)
        try:
            _write_piece(part, data, offset)
            if not message.get("more"):
                self._finish(part, digest, length)
        except FileNotFoundError:  # another connection has finished it, or is about to
            if not (os.path.exists(final) if message.get("more") else self._has(digest, length)):
                raise Refused("damaged", "What had come of `%s` is not here any more." % digest)
            return {"stored": True}
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                unlink(part)  # to go on from there would take the room that another needs
            raise
        return {"stored": not message.get("more")}

    def _finish(self, part: str, digest: str, length: int) -> None:
        """Renames the part first, to a name that no other process on any machine knows, so that nothing changes it
        after the check."""
        mine = self._part("%s-%d-%s" % (digest, os.getpid(), os.urandom(4).hex()))
        os.rename(part, mine)
        try:
            os.truncate(mine, length)
            if _digest(mine) != digest:
                raise _damaged(digest)
            os.chmod(mine, 0o444)
            os.rename(mine, self._final(digest))
            self._have(digest)
        except (OSError, Refused):
            unlink(mine)
            raise

    def _manifest(self, snapshot: str, final: str, base: Any, body: bytes) -> Any:
        """The rows of the snapshot's manifest, which is stored if it had to be made; None if it cannot be had."""
        try:
            with open(final, "rb") as source:
                data = source.read()
            if sha256(data).hexdigest() == snapshot:
                return _rows(data)
            os.unlink(final)
        except (FileNotFoundError, Refused):
            pass
        if base is None:
            return None
        path = object_path(self._home.objects(), base)
        try:
            with open(path, "rb") as source:
                rows = changed(_rows(source.read()), json.loads(_inflate(body).decode("ascii")))
        except (OSError, ValueError, Refused):
            return None
        data = MANIFEST_HEAD + json.dumps(rows, separators=(",", ":")).encode("ascii") + b"}"
        if sha256(data).hexdigest() != snapshot:
            return None
        self._store(snapshot, data)
        return rows

    def _has(self, digest: str, size: int) -> bool:
        """By size too: a machine that lost its power can leave an object shorter than its name promises."""
        try:
            return os.stat(object_path(self._home.objects(), digest)).st_size == size
        except FileNotFoundError:
            return False

    def _store(self, digest: str, data: bytes) -> None:
        if not self._has(digest, len(data)):
            with whole(self._final(digest), 0o444) as target:
                target.write(data)
        self._have(digest)

    def _final(self, digest: str) -> str:
        path = object_path(self._home.objects(), digest)
        make_private(os.path.dirname(path))
        return path

    def _have(self, digest: str) -> None:
        for lacking in self._lacking.values():
            if lacking is not None:
                lacking.pop(digest, None)

    def _part(self, name: str) -> str:
        folder = incoming(self._home)
        make_private(folder)
        return os.path.join(folder, name)

    def _parts(self, digests: Iterable[str]) -> Dict[str, int]:
        remove_stale_parts(self._home)
        found = {}
        for digest in set(names_in(incoming(self._home))).intersection(digests):
            try:
                found[digest] = os.path.getsize(self._part(digest))
            except FileNotFoundError:
                continue  # another connection has finished it
        return found


def incoming(home: Home) -> str:
    """The folder of objects that are still arriving. After a lost connection, a large one continues from its part."""
    return os.path.join(home.objects(), ".incoming")


def remove_stale_parts(home: Home) -> None:
    """Remove partial objects that have not grown for a day."""
    for name in names_in(incoming(home)):
        path = os.path.join(incoming(home), name)
        try:
            if time.time() - os.lstat(path).st_mtime > STALE:
                os.unlink(path)
        except OSError:
            continue  # another agent was quicker


def changed(rows: Rows, difference: Any) -> Rows:
    """The rows of a manifest after `difference`: `removed` paths, and `rows` that are new or other than before."""
    if not isinstance(difference, dict):
        raise Refused("malformed", "A difference of manifests is not an object.")
    by_path = {row[0]: row for row in rows}
    for path in difference.get("removed", []):
        by_path.pop(path, None)
    for row in _checked(difference.get("rows", [])):
        by_path[row[0]] = row
    return [by_path[path] for path in sorted(by_path)]


def _inflate(body: bytes) -> bytes:
    """What zlib made of at most MAX_BODY bytes: no small frame can fill the memory."""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(body, MAX_BODY)
    except zlib.error as error:
        raise Refused("damaged", "What arrived cannot be unpacked: %s." % error)
    if not stream.eof:
        raise Refused("damaged", "What arrived is cut short, or larger than a frame may be.")
    return data


def _ranges(indices: List[int]) -> List[List[int]]:
    """`[begin, end]` of each row of neighbours: of a snapshot that is new here, one for all."""
    found: List[List[int]] = []
    for index in indices:
        if found and found[-1][1] == index:
            found[-1][1] = index + 1
        else:
            found.append([index, index + 1])
    return found


def _rows(data: bytes) -> Rows:
    try:
        document = json.loads(data.decode("ascii"))
    except ValueError:
        raise Refused("damaged", "A manifest is not JSON.")
    return _checked(document.get("files") if isinstance(document, dict) else None)


def _checked(rows: Any) -> Rows:
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == 4 and isinstance(row[0], str) and isinstance(row[2], str) for row in rows
    ):
        raise Refused("malformed", "A manifest's rows are not what they should be.")
    return rows


def _write_piece(part: str, data: bytes, offset: int) -> None:
    """Refuses a piece that would leave a hole, because what came before it was removed meanwhile."""
    flags = os.O_WRONLY | os.O_CLOEXEC | (0 if offset else os.O_CREAT)
    descriptor = os.open(part, flags, 0o600)
    try:
        if not 0 <= offset <= os.fstat(descriptor).st_size:
            raise Refused("damaged", "A piece begins at byte %d, after the end of what is here." % offset)
        os.lseek(descriptor, offset, os.SEEK_SET)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _digest(path: str) -> str:
    total = sha256(size=os.path.getsize(path))
    with open(path, "rb") as source:
        for block in iter(lambda: source.read(CHUNK), b""):
            total.update(block)
    return total.hexdigest()


def _damaged(digest: str) -> Refused:
    return Refused("damaged", "What arrived as `%s` is something else." % digest)
