"""Far sides that mean harm: programs that speak the protocol, after a fashion."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from holdfast.errors import Unreachable
from holdfast.hosts.connection import Connection, RemoteLink, new_nonce

SOURCE = Path(__file__).parents[2] / "src"
_BEGINNING = """
import json, os, sys
sys.path.insert(0, {source!r})
from holdfast.farside.system import frames
nonce, out = {nonce!r}, sys.stdout.buffer

def send(message, body=b""):
    out.write(frames.encode(message, body))
    out.flush()

def request():
    return frames.decode(sys.stdin.buffer.read)

def ready(word=""):
    out.write(frames.marker(nonce)[:-1] + word.encode() + b"\\n")
    out.flush()
"""


def hostile(program: str, is_remote: bool = False) -> Connection:
    """A connection to a far side that is this program. `ready()`, `request()` and `send(message, body)` are there."""
    nonce = new_nonce()
    source = _BEGINNING.format(source=os.fspath(SOURCE), nonce=nonce) + program
    remote = RemoteLink(
        others=(),
        patience=(60.0,),
        supply=lambda: b"supplied\n",
        explain=lambda said: Unreachable("It is gone.", said.stderr),
        refuse=lambda word, rest: Unreachable(f"{word} {rest}"),
        silent=lambda seconds: Unreachable("silent"),
        closed=lambda: None,
    )
    return Connection([sys.executable, "-c", source], nonce, None, remote if is_remote else None)


def memory() -> int:
    """Bytes that this process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10
