"""Which GPUs a library has code for, read from the headers of the fatbins inside it: a few kilobytes of the file.

A fatbin is what `nvcc` puts into an ELF library: a header, then entries one behind another, each the machine code of
one architecture (`sm_80`) or PTX (`ptx_90`), which a driver can compile for that capability and all later ones. The
layout is the same from CUDA 9 to 13; `cuobjdump --list-elf` and `--list-ptx` print the same names.
"""

import os
import struct
from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

_MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")
"""Magic, version, size of this header, size of the entries behind it."""
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
"""Kind, version, size of this header, size behind it, compression, minor and major, architecture, name, flags."""
_PTX, _CUBIN = 1, 2
_THIS_CHIP, _FAMILY = 1 << 20, 1 << 21
_LINKED, _RELOCATABLE = b".nv_fatbin", b"__nv_relfatbin"
_MOST_SECTIONS, _MOST_NAMES, _MOST_FATBINS, _MOST_ENTRIES = 4096, 1 << 20, 20000, 64
_ENOUGH = 128
_STRAY = 0.02
"""An architecture in fewer fatbins than this share is a special case inside (one kernel for one chip); a GPU that finds
nothing else finds nothing."""

_Place = Tuple[int, int]


class Fatbins(NamedTuple):
    """What a library has. No fatbins: it was built without CUDA, or has all its kernels elsewhere."""

    number: int
    architectures: Tuple[str, ...]
    ptx: Optional[Tuple[int, int]]
    """The lowest version of the PTX language in it, which says what driver can compile it."""


class _Entry(NamedTuple):
    name: str
    ptx: Optional[Tuple[int, int]]


class _Odd(Exception):
    """The file is not what its headers say."""


def read_fatbins(path: str) -> Optional[Fatbins]:
    """None if it is not known: no such file, not an ELF library of 64 bits, without names of sections, or damaged."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    try:
        return _fatbins(_File(descriptor))
    except (OSError, _Odd):
        return None
    finally:
        os.close(descriptor)


def cuda_of_ptx(version: Tuple[int, int]) -> Optional[str]:
    """The CUDA whose compiler first wrote this PTX, None for one that is not known: a driver compiles what is not newer
    than itself."""
    major, minor = version
    if major == 6 and minor <= 5:
        return "9.%d" % minor if minor < 3 else "10.%d" % (minor - 3)
    if major == 7 and minor <= 8:
        return "11.%d" % minor
    if major == 8 and minor <= 8:
        return "12.%d" % (minor if minor <= 5 else minor + 1)  # 12.5 and 12.6 have the same
    return "13.0" if version == (9, 0) else None


def capability(architecture: str) -> Optional[Tuple[int, int]]:
    """`(9, 0)` of `sm_90a`, None if it is no such name."""
    digits = architecture.partition("_")[2].rstrip("af")
    return (int(digits) // 10, int(digits) % 10) if digits.isdigit() else None


def order(architecture: str) -> Tuple[str, Tuple[int, int], str]:
    """For sorting: PTX behind code, `sm_100` behind `sm_90`."""
    return "" if architecture.startswith("sm_") else architecture[:3], capability(architecture) or (0, 0), architecture


class _File:
    """Reads what is inside the file, or says that it is odd."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # else each header brings its neighbourhood along

    def read(self, start: int, size: int) -> bytes:
        if start + size > self.size:
            raise _Odd
        content = os.pread(self._descriptor, size, start)
        if len(content) < size:
            raise _Odd
        return content


def _fatbins(file: _File) -> Fatbins:
    sections = _sections(file)
    places = [each for section in sections.get(_LINKED, []) for each in _walk(file, section)]
    if not places:  # what the linker of the device has not yet taken together
        places = [each for section in sections.get(_RELOCATABLE, []) for each in _walk(file, section)]
    fatbins = [list(_entries(file, place)) for place in _sample(places)]
    present = Counter(name for entries in fatbins for name in {entry.name for entry in entries})
    kept = {name for name, count in present.items() if count >= _STRAY * len(fatbins)}
    versions = [entry.ptx for entries in fatbins for entry in entries if entry.ptx is not None and entry.name in kept]
    return Fatbins(len(places), tuple(sorted(kept, key=order)), min(versions) if versions else None)


def _sections(file: _File) -> Dict[bytes, List[_Place]]:
    """Begin and end of each section of interest, by its name."""
    header = file.read(0, 64)
    if header[:6] != b"\x7fELF\x02\x01":
        raise _Odd
    (table,) = struct.unpack_from("<Q", header, 40)
    width, count, names_at = struct.unpack_from("<HHH", header, 58)
    if width != 64 or not 0 < count <= _MOST_SECTIONS or names_at >= count:
        raise _Odd
    rows = list(struct.iter_unpack("<IIQQQQIIQQ", file.read(table, 64 * count)))
    if rows[names_at][5] > _MOST_NAMES:
        raise _Odd
    names = file.read(rows[names_at][4], rows[names_at][5])
    found: Dict[bytes, List[_Place]] = {}
    for row in rows:
        name = names[row[0] : row[0] + 32].partition(b"\0")[0]
        if name in (_LINKED, _RELOCATABLE):
            found.setdefault(name, []).append((row[4], row[4] + row[5]))
    return found


def _walk(file: _File, section: _Place) -> Iterator[_Place]:
    """Where the entries of each fatbin of a section begin and end."""
    position, end = section
    for _ in range(_MOST_FATBINS):
        if position + _HEADER.size > end:
            return
        magic, _, header_size, body = _HEADER.unpack(file.read(position, _HEADER.size))
        if magic == 0:
            position += 8  # filled up to where the next one may begin
            continue
        if magic != _MAGIC or header_size < _HEADER.size or position + header_size + body > end:
            raise _Odd
        yield position + header_size, position + header_size + body
        position += header_size + body
    raise _Odd


def _sample(places: List[_Place]) -> List[_Place]:
    """At most `_ENOUGH` places: reading each may go to the disk. They are pseudo-random, the same every time: a regular
    step could match a pattern in the linker's order."""
    if len(places) <= _ENOUGH:
        return places
    chosen: Set[int] = set()
    state = 1
    while len(chosen) < _ENOUGH:
        state = (state * 1103515245 + 12345) % (1 << 31)
        chosen.add(state * len(places) >> 31)
    return [places[number] for number in sorted(chosen)]


def _entries(file: _File, place: _Place) -> Iterator[_Entry]:
    position, end = place
    for _ in range(_MOST_ENTRIES):
        if position + _ENTRY.size > end:
            return
        row = _ENTRY.unpack(file.read(position, _ENTRY.size))
        position += row[2] + row[3]
        if row[2] < _ENTRY.size or position > end:
            raise _Odd
        entry = _entry(row[0], (row[7], row[6]), row[8], row[11])
        if entry is not None:
            yield entry
    raise _Odd


def _entry(kind: int, version: Tuple[int, int], architecture: int, flags: int) -> Optional[_Entry]:
    if kind not in (_PTX, _CUBIN) or not 10 <= architecture < 1000:
        return None  # code for the linker of the device, or something newer than this
    ending = "f" if flags & _FAMILY else "a" if flags & _THIS_CHIP else ""
    name = "%s_%d%s" % ("ptx" if kind == _PTX else "sm", architecture, ending)
    return _Entry(name, version if kind == _PTX else None)
