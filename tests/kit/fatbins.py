"""Small ELF libraries with fatbins in them, as a linker of CUDA's would leave them: headers are real, code is not."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence

MAGIC = 0xBA55ED50
THIS_CHIP, FAMILY = 1 << 20, 1 << 21


def entry(architecture: str, ptx: tuple[int, int] = (8, 0), payload: int = 40) -> bytes:
    """One entry: `sm_75`, `sm_90a`, `ptx_90`; any other word is an unknown kind."""
    found = re.fullmatch(r"(\w+)_(\d+)([af]?)", architecture)
    assert found, architecture
    kind = {"ptx": 1, "sm": 2}.get(found[1], 8)
    major, minor = ptx if kind == 1 else (1, 7)
    flags = 0x2011 | {"": 0, "a": THIS_CHIP, "f": FAMILY}[found[3]]
    size = 80 if kind == 1 else 64
    header = struct.pack("<HHIQIIHHIIIQ", kind, 0x101, size, payload, 0, 0, minor, major, int(found[2]), 0, 0, flags)
    return header.ljust(size, b"\0") + b"\xc0" * payload


def fatbin(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body


def library(sections: Mapping[str, bytes]) -> bytes:
    """A 64-bit library with these sections, and with those that all have."""
    contents = {"": b"", ".text": b"\x90" * 24, **sections}
    names, starts = b"", {}
    for name in [*contents, ".shstrtab"]:
        starts[name] = len(names)
        names += name.encode() + b"\0"
    contents[".shstrtab"] = names
    body, rows, position = b"", b"", 64
    for name, content in contents.items():
        kind = 0 if not name else 3 if name == ".shstrtab" else 1
        rows += struct.pack("<IIQQQQIIQQ", starts[name], kind, 2, position, position, len(content), 0, 0, 8, 0)
        padded = content + b"\0" * (-len(content) % 8)
        body += padded
        position += len(padded)
    count = len(contents)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, position, 0, 64, 0, 0, 64, count, count - 1
    )
    return header + body + rows


def cuda_library(architectures: Sequence[str], ptx: tuple[int, int] = (8, 0), fatbins: int = 1) -> bytes:
    """A library whose fatbins all have code for the same architectures; without any, one that was built without
    CUDA."""
    if not architectures:
        return library({})
    return library({".nv_fatbin": fatbin(*(entry(each, ptx) for each in architectures)) * fatbins})
