"""Files of a run on their way home, one after another without waiting to be asked: pieces, compressed where that
helps, and at the end of each file its digest."""

import fcntl
import hashlib
import json
import os
import stat
import time
import zlib
from typing import Any, Dict, Iterator, List, Tuple

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


def stream(home: Home, message: Message, files: List[File]) -> Iterator[Frame]:
    """Of each file `piece`s (or `packed` ones) in order, then `whole` with its digest; or `failed` with the reason. A
    file that is written to meanwhile is sent as long as it was when it was opened."""
    for path, offset, digest in files:
        about = {"run": message["run"], "file": path}
        try:
            descriptor = open_file(inside(home, message, path))
            try:
                for frame in _pieces(descriptor, about, offset, digest):
                    yield frame
            finally:
                os.close(descriptor)
        except Refused as refusal:
            yield _failed(about, refusal.kind, refusal.message)
        except FileNotFoundError:
            yield _failed(about, "not-found", "`%s` is not there any more." % path)
        except OSError as error:
            yield _failed(about, "storage", "`%s` cannot be read: %s." % (path, error.strerror))


def _pieces(descriptor: int, about: Message, offset: int, digest: str) -> Iterator[Frame]:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise Refused("refused", "`%s` is not a file." % about["file"])
    total = hashlib.sha256()
    if not _is_beginning(descriptor, offset, digest, total, status.st_size):
        offset, total = 0, hashlib.sha256()
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
    }
    yield dict(about, push="whole", offset=offset), json.dumps(end).encode("ascii")


def _is_beginning(descriptor: int, offset: int, digest: str, total: Any, size: int) -> bool:
    """Whether the file begins with what is at home; `total` has taken that in then."""
    if not 0 <= offset <= size:
        return False
    place = 0
    while place < offset:
        data = os.pread(descriptor, min(CHUNK, offset - place), place)
        if not data:
            return False
        total.update(data)
        place += len(data)
    return offset == 0 or total.hexdigest() == digest


def _failed(about: Message, kind: str, text: str) -> Frame:
    body = json.dumps({"kind": kind, "message": text}).encode("ascii")
    return dict(about, push="failed"), body
