"""Whether git tracks a folder or files in it, from its index alone: every command that uses `.holdfast/` asks this, and
a process would cost more than all the rest. The format: https://git-scm.com/docs/index-format"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass
from holdfast.project.folders_above import counts_above
from holdfast.regular_files import open_regular, read_regular

_MOST = 1 << 12
_LARGEST = 1 << 30
"""Bytes of an index that is read; git's own have about a hundred for each file."""
_HASHES = (20, 32)
"""Bytes of SHA-1 and SHA-256. The index does not say which it has; by the wrong one, no entry makes sense."""
_HEADER = 12
_TIMES_AND_MODES = 40
_LONGEST = 0xFFF
"""Git writes a longer name's length as this."""
_IS_EXTENDED = 0x4000
_IS_SPARSE = 0x4000
"""In the second field of flags: the file is not checked out."""


@dataclass(frozen=True)
class Tracked:
    """What git tracks of a folder. `name`: the folder's, in the work tree `top` and as git spells it. `is_whole`: the
    folder itself, as a submodule or a link, and not files in it. `is_sparse`: it is not checked out."""

    top: Path
    name: str
    is_whole: bool
    is_sparse: bool


_Entry = tuple[bytes, bool]
"""The name, and whether it is sparse."""


def tracked_of(folder: Path) -> Tracked | None:
    """None where there is no work tree, or its index cannot be read. Work trees may lie in each other: git would write
    to the folder in any of them. A stranger's above the project is none: nobody runs git there for this account."""
    for top in (folder.parent, *folder.parent.parents):
        if os.path.lexists(top / ".git"):
            try:
                found = _tracked_by(top, folder) if top == folder.parent or counts_above(top / ".git") else None
            except OSError:
                continue
            if found is not None:
                return found
    return None


def _tracked_by(top: Path, folder: Path) -> Tracked | None:
    path = os.fsencode(folder.relative_to(top).as_posix())
    with contextlib.ExitStack() as stack:
        indexes = {each: stack.enter_context(_mapped(each)) for each in _index_files(top / ".git")}
        if not indexes:
            return None
        if os.path.lexists(top / ".GIT"):  # the disk takes `.HOLDFAST` for the same folder
            return _spelled(top, folder, indexes)
        if not any(_may_name(data, path) for data in indexes.values()):
            return None
        for name, is_sparse in _entries_up_to(path + b"0", indexes):  # the character after a slash
            if name == path or name.startswith(path + b"/"):
                return Tracked(top, os.fsdecode(path), name == path, is_sparse)
    return None


def _may_name(data: bytes, path: bytes) -> bool:
    """Quick, and never wrong in saying no. Since version 4 of the format a name shares its beginning with the one
    before."""
    return data[4:8] == b"\0\0\0\4" or data.find(path) >= 0


def _spelled(top: Path, folder: Path, indexes: dict[Path, bytes]) -> Tracked | None:
    """On a disk that ignores case: any spelling that some disk takes for the folder's name, in the same place."""
    depth = len(folder.relative_to(top).parts)
    entries = list(_entries_up_to(None, indexes))
    if reserved_path([os.fsdecode(name) for name, _ in entries]) is None:  # all at once is quick
        return None
    for name, is_sparse in entries:
        parts = os.fsdecode(name).rstrip("/").split("/")
        if len(parts) >= depth and reserved_path([parts[depth - 1]]) is not None:
            with contextlib.suppress(OSError):
                if os.path.samefile(top.joinpath(*parts[: depth - 1]), folder.parent):
                    is_whole = len(parts) == depth and not name.endswith(b"/")
                    return Tracked(top, "/".join(parts[:depth]), is_whole, is_sparse)
    return None


def _index_files(git: Path) -> Iterator[Path]:
    """The index first, then those that it may share entries with if it is split."""
    if os.path.isfile(git):  # of a linked work tree or a submodule: the file names the real folder
        named = read_regular(git, _MOST).decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
        git = git.parent / named
    if os.path.exists(git / "index"):
        yield git / "index"
        yield from (each for each in git.glob("sharedindex.*") if os.path.isfile(each))


@contextlib.contextmanager
def _mapped(index: Path) -> Iterator[bytes]:
    """The content; empty where it cannot be an index."""
    descriptor = open_regular(index)
    try:
        if not _HEADER < os.fstat(descriptor).st_size <= _LARGEST:
            yield b""
            return
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
            yield data  # type: ignore[misc]  # it is sliced and searched as bytes are
    finally:
        os.close(descriptor)


def _entries_up_to(last: bytes | None, indexes: dict[Path, bytes]) -> Iterator[_Entry]:
    """Of the index, and of the one that it shares entries with, those that count. They are sorted: after a name that is
    greater than `last`, none of that file is looked at."""
    data, *others = indexes.values()
    shared = {each.suffix[1:]: other for each, other in zip(list(indexes)[1:], others, strict=True)}
    for size in _HASHES:
        yield from _sorted_entries(data, size, last)
        link = _link(data, size) if shared else b""
        other = shared.get(link[:size].hex())
        if other is not None:
            deleted = _bits(link[size:], len(other) // _TIMES_AND_MODES)
            yield from _sorted_entries(other, size, last, deleted)


def _sorted_entries(data: bytes, size: int, last: bytes | None, without: Collection[int] = ()) -> Iterator[_Entry]:
    for place, (entry, _) in enumerate(_read(data, size)):
        if last is not None and entry[0] > last:
            return
        if place not in without:
            yield entry


def _read(data: bytes, size: int) -> Iterator[tuple[_Entry, int]]:
    """Each entry, and where the next one begins; up to the first that makes no sense."""
    is_shared, name, at = data[4:8] == b"\0\0\0\4", b"", _HEADER
    for _ in range(int.from_bytes(data[8:12], "big")):
        start, at = at, at + _TIMES_AND_MODES + size
        if at + 5 > len(data):
            return
        flags, is_sparse, kept = data[at] << 8 | data[at + 1], False, 0
        at += 2
        if flags & _IS_EXTENDED:
            is_sparse = bool(data[at] << 8 & _IS_SPARSE)
            at += 2
        if is_shared:
            left_out, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at)
            kept = len(name) - left_out
        end = data.find(b"\0", at)
        if end < 0 or kept < 0:
            return
        name = name[:kept] + data[at:end]
        if min(len(name), _LONGEST) != flags & _LONGEST:
            return
        at = end + 1 if is_shared else start + ((end - start) // 8 + 1) * 8
        yield (name, is_sparse), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Of how many bytes it likes: seven bits in each, and no two ways to write one number. Then what follows."""
    value = -1
    for byte in data[at : at + 10]:
        value, at = (value + 1) << 7 | byte & 0x7F, at + 1
        if not byte & 0x80:
            break
    return value, at


def _link(data: bytes, size: int) -> bytes:
    """What a split index says about the one that it shares entries with: its hash, and which of them are deleted."""
    at = max((after for _, after in _read(data, size)), default=_HEADER)
    while at + 8 <= len(data) - size:
        length = int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"link":
            return data[at + 8 : at + 8 + length]
        at += 8 + length
    return b""


def _bits(ewah: bytes, most: int) -> Collection[int]:
    """The numbers of the bits that are set, below `most`: https://git-scm.com/docs/bitmap-format, appendix A."""
    size = min(int.from_bytes(ewah[:4], "big"), most)
    end = min(8 + 8 * int.from_bytes(ewah[4:8], "big"), len(ewah))
    words = [int.from_bytes(ewah[at : at + 8], "big") for at in range(8, end, 8)]
    found, position, at = set[int](), 0, 0
    while at < len(words) and position < size:
        repeated, literal = words[at] >> 1 & 0xFFFFFFFF, words[at] >> 33
        if words[at] & 1:
            found.update(range(position, min(position + 64 * repeated, size)))
        position += 64 * repeated
        for word in words[at + 1 : at + 1 + literal]:
            found.update(position + bit for bit in range(64) if word >> bit & 1)
            position += 64
        at += 1 + literal
    return found
