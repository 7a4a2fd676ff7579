"""Files of a run on their way home, one after another without waiting to be asked: pieces, compressed where that
helps, and at the end of each file its digest."""

import fcntl
import hashlib
import json
import os
import stat
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Tuple

from holdfast.farside.frames import CHUNK
from holdfast.farside.layout import Home, relative_parts
from holdfast.farside.refusal import Refused
from holdfast.farside.store.storage import STEADY, inside, open_file

SAMPLE = 1 << 16
WORTH = 0.9
"""Compression is worth its time where a sample shrinks to less than this part of itself."""
_F_SETPIPE_SZ = 1031  # Python 3.10 has it by name

Message = Dict[str, Any]
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


def widen(descriptor: int) -> None:
    """Let the pipe that leads home hold a whole piece: the next one is read and hashed while the server still takes
    this one. Where it is no pipe, or not allowed, it stays as it is."""
    try:
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, CHUNK)
    except OSError:
        pass


def stream(home: Home, message: Message, files: List[File], beat: Callable[[], None]) -> Iterator[Frame]:
    """Of each file `piece`s (or `packed` ones) in order, then `whole` with its digest; or `failed` with the reason. A
    file that is written to meanwhile is sent as long as it was when it was opened. `beat` is called all the time while
    nothing is sent."""
    for path, offset, digest in files:
        about = {"run": message["run"], "file": path}
        try:
            descriptor = open_file(inside(home, message, path))
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
    first = os.pread(descriptor, SAMPLE, offset)
    packs = len(first) > 256 and len(zlib.compress(first, 1)) < WORTH * len(first)
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
        "steady": time.time() - status.st_mtime > STEADY,
        "executable": bool(status.st_mode & stat.S_IXUSR),
    }
    yield dict(about, push="whole", offset=offset), json.dumps(end).encode("ascii")


def _beginning(descriptor: int, have: Tuple[int, str], size: int, beat: Callable[[], None]) -> Tuple[int, Any]:
    """Where to go on, with the hash of what is before: after what is at home, if the file begins with that."""
    length, digest = have
    total = hashlib.sha256()
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
    return 0, hashlib.sha256()


def _failed(about: Message, kind: str, text: str) -> Frame:
    body = json.dumps({"kind": kind, "message": text}).encode("ascii")
    return dict(about, push="failed"), body
