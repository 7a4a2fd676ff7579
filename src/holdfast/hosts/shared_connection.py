"""One connection to a machine for several ssh processes (ControlMaster): ours, kept for a minute after use, or the
user's own where one is open. A master that does not answer is left aside: its clients would hang with it."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from holdfast.farside.system.digests import sha256

KEPT_SECONDS = 60
PATIENCE = 1.0
_LONGEST_PATH = 104 - 18
"""Bytes of a socket's path on the strictest system, less what ssh appends while it makes one."""
_LONGEST_FOLDER = _LONGEST_PATH - 24
_HELLO = 1


def runtime_folder(environment_folder: str | None, temporary: Path) -> Path | None:
    """A short path of the user's own for sockets; None if there is none that only this user can touch."""
    if not hasattr(os, "getuid"):
        return temporary
    named = Path(environment_folder) if environment_folder else None
    below = temporary / f"holdfast-{os.getuid()}"
    if named is not None and named.is_dir() and len(os.fsencode(named)) <= _LONGEST_FOLDER:
        below = named / "holdfast"
    if len(os.fsencode(below)) > _LONGEST_FOLDER:
        return None
    try:
        below.mkdir(mode=0o700, exist_ok=True)
        status = below.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return below if is_ours else None


def own_socket(folder: Path | None, identity: Sequence[str]) -> Path | None:
    """Where Holdfast's own master for this way of connecting listens; None where the system has no such thing."""
    if folder is None or os.name == "nt":
        return None
    path = folder / sha256("\0".join(identity).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return path if len(os.fsencode(path)) <= _LONGEST_PATH else None


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
