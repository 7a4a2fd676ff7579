"""One connection to a machine for several ssh processes (ControlMaster): ours, kept for a minute after use, or the
user's own where one is open. A master that does not answer is left aside: its clients would hang with it."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from holdfast.farside.system.digests import sha256
from holdfast.hosts.socket_folder import LONGEST_PATH

KEPT_SECONDS = 60
PATIENCE = 1.0
_HELLO = 1


def own_socket(folder: Path | None, identity: Sequence[str]) -> Path | None:
    """Where Holdfast's own master for this way of connecting listens; None where the system has no such thing."""
    if folder is None or os.name == "nt":
        return None
    path = folder / sha256("\0".join(identity).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return path if len(os.fsencode(path)) <= LONGEST_PATH else None


def answers(path: Path) -> bool:
    """Whether a living master listens there. It greets every caller, so one that is stuck shows at once."""
    import socket  # 3 ms, and only where there may be a master

    link = socket.socket(socket.AF_UNIX)
    link.settimeout(PATIENCE)
    try:
        link.connect(os.fspath(path))
        greeting = b""
        while len(greeting) < 8:
            data = link.recv(8 - len(greeting))
            if not data:
                return False
            greeting += data
    except OSError:
        return False
    finally:
        link.close()
    return bool(struct.unpack(">II", greeting)[1] == _HELLO)


def own_options(path: Path) -> list[str]:
    """Use the master there, or become it."""
    return [
        "-o",
        "ControlMaster=auto",
        "-o",
        f"ControlPath={os.fspath(path).replace('%', '%%')}",
        "-o",
        f"ControlPersist={KEPT_SECONDS}",
    ]


NO_SHARING = ["-o", "ControlMaster=no", "-o", "ControlPath=none"]
