"""The way that a run's files take home."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from holdfast.farside.frames import CHUNK
from holdfast.farside.store import streaming

_F_GETPIPE_SZ = 1032


def test_a_pipe_that_leads_home_holds_a_whole_piece():
    read, write = os.pipe()
    try:
        streaming.widen(write)
        assert fcntl.fcntl(write, _F_GETPIPE_SZ) >= CHUNK
    finally:
        os.close(read)
        os.close(write)


def test_what_is_no_pipe_stays_as_it_is(tmp_path: Path):
    with (tmp_path / "file").open("wb") as file:
        streaming.widen(file.fileno())
        file.write(b"x")
    assert (tmp_path / "file").read_bytes() == b"x"
