"""Programs that stand in for others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

ELF = "\x7fELF"
"""Looks like a compiled program."""


def program(path: Path, script: str = ELF) -> Path:
    """A program that runs this script, with `/bin/sh` unless it names an interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script if script.startswith(("#!", ELF)) else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print(flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def lock_held(path: Path, byte: int = 0) -> Iterator[IO[bytes]]:
    """A process holds this byte of the file until this pipe is closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-I", "-S", "-c", HOLD, str(path), str(byte)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stdout.readline() == b"\n"
        with holder.stdin as pipe:
            yield pipe
