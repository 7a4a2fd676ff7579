"""The near copies of a run's far files: written by one process at a time, by offset, checked against what is there; and
read by any number, each from its own place."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HostError, StorageError
from holdfast.history import journal_fold as journals
from holdfast.history.records import DIVERGED
from holdfast.hosts.connection import Push, prefix_checksum
from holdfast.regular_files import open_regular
from holdfast.whole_files import move, try_lock
from holdfast.workbench.reach import events

_WRITER = "writer.lock"
_PIECE = 1 << 20
_MOST_ASIDE = 20
"""Copies of one file that are kept beside it."""
_PHASES = (journals.PhaseBegan, journals.Queued, journals.ScriptStarted)
_FILES = ("journal.jsonl", "driver_log", "control_log", "environment.json", "gpu.jsonl")
_NAME = re.compile(rf"({'|'.join(map(re.escape, _FILES))}|metrics/[0-9]+-[A-Za-z0-9]{{1,64}}\.jsonl)\Z")


class Mirror:
    """Made by the process that holds the run's `writer.lock`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def have(self) -> dict[str, list[int]]:
        """Bytes at home and their checksum, per file: what the far side continues from."""
        found = {}
        for name in (*_FILES, *self._metric_files()):
            path = self._folder / name
            if path.exists():
                with path.open("rb") as source:
                    size = os.fstat(source.fileno()).st_size
                    found[name] = [size, prefix_checksum(source.fileno(), size)]
        return found

    def apply(self, push: Push) -> bool:
        """Write what came; True if it was something to write. Bytes that do not continue the copy are refused: the
        connection is then taken up again by offset."""
        if push.kind not in ("data", "restart"):
            return False
        if not _NAME.match(push.file):
            raise HostError(f"The far side sent a file `{push.file}` that no run has.")
        path = self._folder / push.file
        try:
            _require_folder(path.parent)
            if push.kind == "restart":
                _set_aside(path)
                return True
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with os.fdopen(open_regular(path, flags, follows_link=False), "ab") as target:
                if target.tell() != push.offset:
                    raise HostError(f"The far side sent `{push.file}` from byte {push.offset}, not {target.tell()}.")
                target.write(push.data)
        except OSError as error:
            raise StorageError(
                f"The run's output cannot be stored at `{path}`: {error.strerror}.",
                "The run goes on. Make room, then: holdfast logs -f",
            ) from error
        return True

    def _metric_files(self) -> list[str]:
        try:
            names = [f"metrics/{name}" for name in sorted(os.listdir(self._folder / "metrics"))]
            return [name for name in names if _NAME.match(name)]
        except FileNotFoundError:
            return []


class View:
    """What one reader has shown of a run's copies so far, and what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: dict[str, tuple[int, int]] = {}
        self._journal = journals.JournalReader()

    def news(self) -> Iterator[events.Event]:
        """What the copies have that was not shown. The journal is read first: its end implies the whole output."""
        while data := self._take("journal.jsonl"):
            parsed = list(self._journal.feed(data))
            phases = [place for place, each in enumerate(parsed) if isinstance(each, _PHASES)]
            over = set(phases[:-1])
            for place, event in enumerate(parsed):
                if place not in over:
                    yield events.Recorded(self._folder.name, event)
        while output := self._take("driver_log"):
            yield events.OutputArrived(self._folder.name, output)

    def _take(self, name: str) -> bytes:
        """The next bytes of a copy; from its beginning if it was set aside and begun again."""
        try:
            with (self._folder / name).open("rb") as source:
                identity = os.fstat(source.fileno()).st_ino
                seen, offset = self._shown.get(name, (identity, 0))
                source.seek(offset if seen == identity else 0)
                begin = source.tell()
                data = source.read(_PIECE)
        except FileNotFoundError:
            return b""
        if name == "journal.jsonl" and seen != identity:
            self._journal = journals.JournalReader()
        self._shown[name] = (identity, begin + len(data))
        return data


@contextlib.contextmanager
def writer_lock(folder: Path) -> Iterator[bool]:
    """Whether this process is the one that may write the copies. Released when it ends, however it ends."""
    try:
        descriptor = open_regular(_place_of_lock(folder), os.O_RDWR | os.O_CREAT, follows_link=False, mode=0o600)
    except OSError as error:
        raise StorageError(
            f"The run's folder `{folder}` cannot be written: {error.strerror}.", "Check its permissions and the disk."
        ) from error
    try:
        if not try_lock(descriptor):
            yield False
            return
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; only its name is missing
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, f"{os.getpid():<12}".encode())
        yield True
    finally:
        os.close(descriptor)


def stopped_writer(folder: Path) -> int | None:
    """The pid of the process that copies this run and is stopped (Ctrl-Z), so that the copies do not grow. None where
    processes are not listed as files: not on Linux."""
    try:
        pid = int(_place_of_lock(folder).read_bytes() or 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError, IndexError):
        return None
    return pid if state in "Tt" else None


def _place_of_lock(folder: Path) -> Path:
    """Windows renames no folder in which a file is open, and a run's folder is renamed while its lock is held. So the
    lock lies beside it there, under the name that the folder will have."""
    if sys.platform == "win32":
        return folder.with_name(f".{folder.name.removesuffix('.new')}.{_WRITER}")
    return folder / _WRITER


def _require_folder(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "is a link", str(folder))


def _set_aside(path: Path) -> None:
    """A copy that is not the beginning of the far file is kept under another name, never spliced. Raises
    HostError for a host that begins a file again and again."""
    if not path.exists():
        return
    for number in range(1, _MOST_ASIDE + 1):
        other = path.with_name(f"{path.name}{DIVERGED}{number}")
        if not os.path.lexists(other):
            move(path, other)
            return
    raise HostError(
        f"The far side began `{path.name}` again more than {_MOST_ASIDE} times.",
        f"The earlier copies are in `{path.parent}`. To take another one, remove those of `{path.name}`.",
    )
