"""The file of the index: a cache. It is made when it is missing, replaced when it is damaged, and done without when it
cannot be written. Other tables are another file: the version is in its name.

Operations are functions of a connection, because they may have to be run again: on a fresh file after damage, or, for
reading, on a copy in memory where the folder is read-only, the disk full, or the file locked by another process.

The journal mode stays SQLite's default: a write-ahead log needs shared memory, which network disks lack.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import StorageError
from holdfast.regular_files import what_is_odd
from holdfast.whole_files import FULL, READ_ONLY, storage_error, try_lock

if TYPE_CHECKING:
    import sqlite3

Result = TypeVar("Result")
BUSY_SECONDS = 10.0
"""How long to wait for another process to write, before writing; before reading, which goes on without the file."""
BUSY_READING = 1.0
_BUSY_COPYING = 0.1
VERSION = 1
"""Of the tables, and of what is written into them."""
# `created` is by the order of the ids, which is that of making, whatever the clock said.
_TABLES = (
    "CREATE TABLE runs (run_id TEXT PRIMARY KEY, created REAL NOT NULL, script TEXT NOT NULL,"
    " target TEXT NOT NULL, status TEXT NOT NULL, final INTEGER NOT NULL, settled INTEGER NOT NULL,"
    " tracked INTEGER NOT NULL, parent TEXT, record TEXT NOT NULL, shown TEXT NOT NULL)",
    "CREATE TABLE seen (folder_time INTEGER NOT NULL)",
    "CREATE INDEX runs_by_age ON runs (created DESC, run_id DESC)",
    "CREATE INDEX runs_unsettled ON runs (run_id) WHERE settled = 0",
    "CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL",
    "CREATE TABLE metrics (run_id TEXT NOT NULL, name TEXT NOT NULL, value REAL,"
    " PRIMARY KEY (run_id, name)) WITHOUT ROWID",
    "CREATE INDEX metrics_by_value ON metrics (name, value)",
    "CREATE TABLE numbers (script TEXT NOT NULL, number INTEGER NOT NULL, run_id TEXT NOT NULL UNIQUE,"
    " PRIMARY KEY (script, number)) WITHOUT ROWID",
    f"PRAGMA user_version = {VERSION}",
)


class Database:
    def __init__(self, state: Path) -> None:
        self.path = state / f"index-{VERSION}.sqlite"

    def write(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` on the file, which is made if it is missing. StorageError if it cannot be written."""
        import sqlite3

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "make the folder of the index", self.path.parent) from error
        link = _link_at(self.path)
        if link is not None:
            raise StorageError(*what_is_odd(link))
        try:
            return self._on_file(operation, BUSY_SECONDS)
        except sqlite3.Error as error:
            raise _storage_error(error, self.path) from error

    def read(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` on the file or, if that fails, on a copy in memory: reading always works, and soon."""
        import sqlite3

        if self.path.parent.is_dir() and _link_at(self.path) is None:
            with contextlib.suppress(sqlite3.Error, *_MISREAD, StorageError):
                return self._on_file(operation, BUSY_READING)
            with contextlib.suppress(sqlite3.Error, *_MISREAD), _in_memory(self.path) as connection:
                return operation(connection)
        with _in_memory() as connection:
            return operation(connection)

    def _on_file(self, operation: Callable[[sqlite3.Connection], Result], patience: float) -> Result:
        import sqlite3

        for is_last_attempt in (False, False, False, True):
            found = _stamp(self.path)
            try:
                with contextlib.closing(_connect(self.path, patience)) as connection:
                    return operation(connection)
            except (sqlite3.Error, *_MISREAD) as error:
                is_damage = _is_damage(error)
                if is_last_attempt or not (is_damage or _is_disturbed(error)):
                    raise
                if is_damage:
                    self._remove(found, patience)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _remove(self, damaged: tuple[int, int, int] | None, patience: float) -> None:
        """With its rollback journal, which must not be applied to the next one. A file that has changed since may be
        another process's new one: it stays."""
        try:
            with _alone_in(self.path.parent, patience):
                if _stamp(self.path) == damaged:
                    self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
                    self.path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, "replace the damaged index", self.path) from error


@contextlib.contextmanager
def _in_memory(path: Path | None = None) -> Iterator[sqlite3.Connection]:
    """Empty, or what the file has."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if path is not None:
            address = f"{path.absolute().as_uri()}?mode=ro"
            copying = sqlite3.connect(address, uri=True, timeout=_BUSY_COPYING, isolation_level=None)
            with contextlib.closing(copying) as source:
                source.execute("BEGIN")
                _is_made(source)  # takes the lock, or fails in time: `backup` would wait for ever
                source.backup(connection)
        _make_tables(connection)
        yield connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing. Locked at once: two readers that then want to write would block each other."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        # Nothing is only here: what a power cut damages is made anew from the run folders.
        connection.execute("PRAGMA synchronous = OFF")
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    if _is_made(connection):
        return
    with transaction(connection):
        for statement in () if _is_made(connection) else _TABLES:  # another process may have been quicker
            connection.execute(statement)


def _is_made(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0])


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


@contextlib.contextmanager
def _alone_in(folder: Path, patience: float) -> Iterator[None]:
    """Of two processes that meet a damaged file, the second must not remove what the first made anew."""
    with contextlib.ExitStack() as stack:
        # Windows does not remove a file that another process has open, which has the same effect.
        if sys.platform != "win32":
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            deadline = time.monotonic() + patience
            while not _is_locked(descriptor):
                if time.monotonic() > deadline:
                    raise OSError(errno.EAGAIN, "the folder is locked by another process", os.fspath(folder))
                time.sleep(0.02)
        yield


def _is_locked(descriptor: int) -> bool:
    """Whether the folder is ours alone now. Some network disks do not lock folders: then it counts as ours."""
    try:
        return try_lock(descriptor)
    except OSError:
        return True


def _link_at(path: Path) -> str | None:
    """SQLite follows a link, and opens files beside its own."""
    names = (os.fspath(path) + end for end in ("", "-journal", "-wal", "-shm"))
    return next((name for name in names if os.path.islink(name)), None)


_MISREAD = (ValueError, TypeError)
"""Errors from a row whose values are not those that were written."""


def _is_disturbed(error: Exception) -> bool:
    """A process that still has a damaged file open mistakes the new file's journal, which has the same name, for its
    own, and removes it. A disk that really fails does so again."""
    return "disk I/O error" in str(error)


def _is_damage(error: Exception) -> bool:
    """Whether the file's contents are wrong, not its surroundings. By text: Python 3.10 has no codes."""
    return not _is_disturbed(error) and not any(fragment in str(error) for fragment in _REMEDIES)


def _storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    text = str(error)
    remedies = [remedy for fragment, remedy in _REMEDIES.items() if fragment in text]
    other = "Delete the file and run the command again: it is made anew from the run folders."
    return StorageError(f"Could not write the index of runs: {text} (`{path}`).", (*remedies, other)[0])


_REMEDIES = {
    "disk is full": FULL,
    "readonly database": READ_ONLY,
    "unable to open database": READ_ONLY,
    "is locked": "Another Holdfast process has been writing to it for long. When it has ended, run this again.",
}
