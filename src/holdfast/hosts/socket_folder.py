"""The folder for sockets of this account: of open connections, and of questions that ssh asks. Nobody else can enter
it, and it has no name that somebody else could have taken before."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from holdfast.farside.system.digests import sha256
from holdfast.farside.system.ownership import make_private
from holdfast.whole_files import write_whole

LONGEST_PATH = 104 - 18
"""Bytes of a socket's path on the strictest system, less what ssh appends while it makes one."""
_LONGEST_FOLDER = LONGEST_PATH - 17
_TRIES = 8


def runtime_folder(environment_folder: str | None, temporary: Path, home: Path) -> Path | None:
    """Below XDG_RUNTIME_DIR, else in Holdfast's folder, which each machine that shares it has one for. Where its path
    is too long, or its disk has no sockets, one of a random name in `temporary`, which Holdfast's folder remembers.
    None if there is none that only this account can touch."""
    if not hasattr(os, "getuid"):
        return temporary
    if environment_folder and _is_own(Path(environment_folder)):
        below = Path(environment_folder, "holdfast")
        if _is_short(below) and _made(below):
            return below
    inside = home / f"run-{sha256(os.uname().nodename.encode()).hexdigest()[:4]}"
    if _is_short(inside) and (_is_own(inside) or _made_with_sockets(inside)):
        return inside
    return _remembered(inside.with_name(f"{inside.name}.at"), temporary)


def _is_short(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= _LONGEST_FOLDER


def _is_own(folder: Path) -> bool:
    """A folder, and no link to one, that this account owns and nobody else can enter."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _made(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        make_private(os.fspath(folder))
    return _is_own(folder)


def _made_with_sockets(folder: Path) -> bool:
    """Some network disks have none; ssh would give the connection up."""
    import socket  # 3 ms, and only the first time

    with contextlib.suppress(OSError):
        make_private(os.fspath(folder.parent))
    if not _made(folder):
        return False
    probe = folder / f"new-{os.urandom(4).hex()}"
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.bind(os.fspath(probe))
        probe.unlink()
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return False
    return True


def _remembered(memory: Path, temporary: Path) -> Path | None:
    """One that a cleaner of `temporary` took, or whose name somebody else has by now, is replaced by another."""
    with contextlib.suppress(OSError, ValueError):
        known = Path(memory.read_text(encoding="utf-8", errors="surrogateescape"))
        if known.parent == temporary and _is_short(known) and _is_own(known):
            return known
    for _ in range(_TRIES):
        folder = temporary / f"hf-{os.urandom(6).hex()}"
        if not _is_short(folder):
            return None
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError:
            return None
        try:
            make_private(os.fspath(memory.parent))
            write_whole(memory, os.fsencode(folder), 0o600)
        except OSError:
            folder.rmdir()  # nobody would find it again
            return None
        return folder
    return None
