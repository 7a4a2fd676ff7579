"""Who uses a daemon. Each user holds a lock on a file in its folder, which the kernel drops when the user dies. So the
last user can end the daemon, and a later session can end unused daemons."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from kit.accounts import left_behind, locked_folder
from kit.docker.daemon import CACHE, Daemon, Settings

_PREFIX = "hfdd-"


@contextlib.contextmanager
def held(settings: Settings = Settings(), template: Path | None = None) -> Iterator[Daemon]:  # noqa: B008 - it is frozen
    """A daemon for one user, which starts it; ended and removed at the end."""
    sweep()
    daemon, users = _create(settings, template)
    with users:
        try:
            yield daemon
        finally:
            daemon.close()


@contextlib.contextmanager
def shared(template: Path) -> Iterator[Daemon]:
    """The daemon that every process of this session shares, running. The last one to leave ends it.

    Another session cannot share it: each has its own process namespace, and ends everything that it started.
    """
    note = CACHE / f"shared-{template.name}-{os.stat('/proc/self/ns/pid').st_ino}"
    with locked(CACHE / "shared.lock"):
        daemon, users = _enter(note) or _create(Settings(), template)
        note.write_text(str(daemon.folder))
        daemon.start()
    try:
        yield daemon
    finally:
        with locked(CACHE / "shared.lock"), users:
            if _is_ours_alone(users):
                daemon.close()
                note.unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sweep() -> None:
    """End the kit's unused daemons, and remove their files."""
    for folder in Path("/tmp").glob(f"{_PREFIX}*"):
        with left_behind(folder, "users") as is_left:
            if is_left:
                if (folder / "daemon.json").exists():
                    Daemon.at(folder).close()
                shutil.rmtree(folder, ignore_errors=True)


def _enter(note: Path) -> tuple[Daemon, IO[str]] | None:
    """The shared daemon if it is in use. A leftover daemon is ended, because its containers are not ours."""
    sweep()
    with contextlib.suppress(OSError):
        folder = Path(note.read_text())
        users = (folder / "users").open("r+")
        fcntl.flock(users, fcntl.LOCK_SH)
        return Daemon.at(folder), users
    return None


def _create(settings: Settings, template: Path | None) -> tuple[Daemon, IO[str]]:
    folder, users = locked_folder(_PREFIX, "users")
    fcntl.flock(users, fcntl.LOCK_SH)
    return Daemon.create(folder, settings, template), users


def _is_ours_alone(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
