"""Architectures are read quickly from the headers of any library; a damaged or hostile file is only unknown."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from holdfast.farside.environments.fatbin import Fatbins, capability, cuda_of_ptx, read_fatbins
from kit.fatbins import cuda_library, entry, fatbin, library


def read(tmp_path: Path, content: bytes) -> Fatbins | None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    return read_fatbins(str(path))


RELOCATABLE = fatbin(entry("sm_35"))
USUAL, SPECIAL = fatbin(entry("sm_75"), entry("sm_80")), fatbin(entry("sm_75"), entry("sm_121a"))
APART = fatbin(entry("sm_70"), entry("lto_75")) + b"\0" * 24 + fatbin(entry("sm_80"), entry("sm_80", payload=8000))


@pytest.mark.parametrize(
    ("content", "number", "architectures", "ptx"),
    [
        (
            cuda_library(["ptx_90", "sm_100", "sm_90a", "sm_75", "sm_120f"], (8, 3), fatbins=2),
            2,
            ("sm_75", "sm_90a", "sm_100", "sm_120f", "ptx_90"),
            (8, 3),
        ),
        (library({".data": b"x" * 100}), 0, (), None),
        (library({"__nv_relfatbin": RELOCATABLE, ".nv_fatbin": fatbin(entry("sm_80"))}), 1, ("sm_80",), None),
        (library({"__nv_relfatbin": RELOCATABLE}), 1, ("sm_35",), None),
        (library({".nv_fatbin": USUAL * 50 + SPECIAL + USUAL * 50}), 101, ("sm_75", "sm_80"), None),
        (library({".nv_fatbin": APART}), 2, ("sm_70", "sm_80"), None),
    ],
    ids=[
        "in order, and PTX says its version",
        "none at all, which is not unknown",
        "code that waits for the linker beside other",
        "code that waits for the linker alone",
        "what one kernel in a hundred is compiled for is not listed",
        "room between fatbins, and entries of unknown kinds",
    ],
)
def test_architectures_are_read(content, number, architectures, ptx, tmp_path):
    assert read(tmp_path, content) == Fatbins(number, architectures, ptx)


def test_fatbins_in_a_regular_order_are_all_seen(tmp_path):
    """Only some of many entries are read: no step between them may hide every second or tenth."""
    for period in (2, 3, 5, 8, 10):
        kinds = [fatbin(entry(f"sm_{50 + number}")) for number in range(period)]
        found = read(tmp_path, library({".nv_fatbin": b"".join(kinds) * (960 // period)}))
        assert found is not None
        assert len(found.architectures) == period


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF",
        b"not a library\n" * 100,
        b"\x7fELF\1\1" + b"\0" * 100,  # of 32 bits
        b"\x7fELF\2\2" + b"\0" * 100,  # of another byte order
        library({".nv_fatbin": b"\x11" * 64}),
        library({".nv_fatbin": struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 62)}),
        library({".nv_fatbin": struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0) * 4}),  # would be walked for ever
        library({".nv_fatbin": fatbin(b"\2\0\1\1" + b"\0" * 60)}),  # an entry of size nought
        library({".nv_fatbin": fatbin(entry("sm_80") * 100)}),
        library({".nv_fatbin": b"\0" * 400000}),
    ],
)
def test_what_is_no_library_or_lies_about_its_sizes_is_unknown(content, tmp_path):
    assert read(tmp_path, content) is None


def test_a_file_that_is_not_there_a_folder_and_a_pipe_are_unknown(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert [read_fatbins(str(tmp_path / name)) for name in ("none", "pipe", "", "a\0b")] == [None] * 4


def test_a_truncated_library_is_unknown_wherever_it_was_cut(tmp_path):
    whole = cuda_library(["sm_75", "sm_80"], fatbins=3)
    assert {read(tmp_path, whole[:length]) for length in range(0, len(whole), 29)} == {None}


def test_damaged_bytes_never_raise(tmp_path):
    whole, dice = cuda_library(["sm_75", "ptx_80"], fatbins=3), random.Random(7)
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        found = read(tmp_path, bytes(damaged))
        assert found is None or found.number >= 0


def test_only_headers_are_read_of_a_large_library(tmp_path, monkeypatch):
    amounts: list[int] = []
    real = os.pread

    def pread(file: int, amount: int, offset: int) -> bytes:
        amounts.append(amount)
        return real(file, amount, offset)

    monkeypatch.setattr(os, "pread", pread)
    large = library({".nv_fatbin": fatbin(entry("sm_80", payload=8_000_000), entry("sm_90"))})
    assert read(tmp_path, large) == Fatbins(1, ("sm_80", "sm_90"), None)
    assert sum(amounts) < 2000


def test_names_become_capabilities_and_versions_of_ptx_become_cuda():
    names = ["sm_75", "sm_90a", "sm_100f", "ptx_121", "native", "sm_"]
    assert [capability(name) for name in names] == [(7, 5), (9, 0), (10, 0), (12, 1), None, None]
    versions = [(6, 0), (6, 3), (6, 5), (7, 8), (8, 5), (8, 6), (8, 8), (9, 0), (9, 7), (5, 0)]
    known = ["9.0", "10.0", "10.2", "11.8", "12.5", "12.7", "12.9", "13.0", None, None]
    assert [cuda_of_ptx(version) for version in versions] == known
