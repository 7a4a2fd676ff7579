"""The file of the index: opened, migrated, set aside when damaged, done without when it cannot be written.

Operations are functions of a connection, because they may have to be run again: on a fresh file after damage,
or, for reading, on a copy in memory where the folder is read-only or the disk full.

The journal mode stays SQLite's default: a write-ahead log needs shared memory, which network disks lack.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import StorageError
from holdfast.history.storage import storage_error
from holdfast.history.values import UnreadableError

if TYPE_CHECKING:
    import sqlite3

Result = TypeVar("Result")
BUSY_SECONDS = 10.0


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE runs (run_id TEXT PRIMARY KEY, created REAL NOT NULL, script TEXT NOT NULL,"
        " target TEXT NOT NULL, status TEXT NOT NULL, final INTEGER NOT NULL, settled INTEGER NOT NULL,"
        " tracked INTEGER NOT NULL, parent TEXT, record TEXT NOT NULL, shown TEXT NOT NULL)"
    )
    connection.execute("CREATE TABLE seen (folder_time INTEGER NOT NULL)")
    connection.execute("CREATE INDEX runs_by_age ON runs (created DESC, run_id DESC)")
    connection.execute("CREATE INDEX runs_unsettled ON runs (run_id) WHERE settled = 0")
    connection.execute("CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL")
    connection.execute(
        "CREATE TABLE metrics (run_id TEXT NOT NULL, name TEXT NOT NULL, value REAL,"
        " PRIMARY KEY (run_id, name)) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX metrics_by_value ON metrics (name, value)")
    connection.execute(
        "CREATE TABLE numbers (script TEXT NOT NULL, number INTEGER NOT NULL, run_id TEXT NOT NULL UNIQUE,"
        " PRIMARY KEY (script, number)) WITHOUT ROWID"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create,)
"""Applied in order; `PRAGMA user_version` counts those that a file has seen. Append only."""


class Database:
    def __init__(self, state: Path) -> None:
        self.state = state

    @property
    def path(self) -> Path:
        return self.state / "index.sqlite"

    def write(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` on the file, which is made if need be. StorageError when it cannot be written."""
        import sqlite3

        try:
            self.state.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "make the folder of the index", self.state) from error
        try:
            return self._with_healing(operation)
        except sqlite3.Error as error:
            raise _storage_error(error, self.path) from error

    def read(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run `operation` on the file or, where that cannot be, on a copy in memory: reading always works."""
        import sqlite3

        if self.state.is_dir():
            with contextlib.suppress(sqlite3.Error, UnreadableError, StorageError):
                return self._with_healing(operation)
            with contextlib.suppress(sqlite3.Error, UnreadableError), _memory() as connection:
                self._copy_into(connection)
                return operation(connection)
        with _memory() as connection:
            _migrate(connection)
            return operation(connection)

    def _with_healing(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        import sqlite3

        damaged: tuple[int, int] | None = None
        for last_attempt in (False, False, True):
            path = self._usable_path(damaged)
            used = _identity(path)
            try:
                with contextlib.closing(_connect(path)) as connection:
                    _migrate(connection)
                    return operation(connection)
            except (sqlite3.Error, UnreadableError) as error:
                if last_attempt or not (_is_damage(error) or _is_disturbed(error)):
                    raise
                damaged = used if _is_damage(error) else None
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _usable_path(self, damaged: tuple[int, int] | None) -> Path:
        """The file to use. A damaged one is renamed first; one of a later version is left to that version."""
        import sqlite3

        beside = self.path.with_name(f"index-v{len(MIGRATIONS)}.sqlite")
        if damaged is not None:
            with _alone_in(self.state):
                for path in (self.path, beside):
                    if _identity(path) == damaged:  # else another process has replaced it
                        _set_aside(path)
        with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(self.path)) as connection:
            if _version(connection) > len(MIGRATIONS):
                return beside
        return self.path

    def _copy_into(self, memory: sqlite3.Connection) -> None:
        import sqlite3

        address = f"{self.path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as source:
            source.backup(memory)
        if _version(memory) != len(MIGRATIONS):
            raise UnreadableError("another version's index")


@contextlib.contextmanager
def _memory() -> Iterator[sqlite3.Connection]:
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
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


def _connect(path: Path) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        # Nothing is only here: what a power cut damages is made anew from the run folders.
        connection.execute("PRAGMA synchronous = OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) >= len(MIGRATIONS):
        return
    with transaction(connection):
        for step in MIGRATIONS[_version(connection) :]:  # asked again: another process may have been quicker
            step(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Of two processes that meet a damaged file, the second must not set aside what the first made anew."""
    with contextlib.ExitStack() as stack:
        # Windows does not replace a file that another process has open, which has the same effect.
        with contextlib.suppress(OSError):  # network disks that do not lock folders
            if sys.platform != "win32":
                import fcntl

                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _set_aside(path: Path) -> None:
    """Keep the damaged file, one at most. Its rollback journal must not be applied to the new one."""
    try:
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.replace(path.with_name(f"{path.stem}.damaged.sqlite"))
    except FileNotFoundError:
        pass  # another process was quicker
    except OSError as error:
        raise storage_error(error, "replace the damaged index", path) from error


def _is_disturbed(error: Exception) -> bool:
    """A process that still has a damaged file open takes the journal of the new one, which has its name, for its own,
    and removes it under whoever writes. A disk that really fails does so again."""
    return "disk I/O error" in str(error)


def _is_damage(error: Exception) -> bool:
    """Whether the file's contents are wrong, not its surroundings. By text: Python 3.10 has no codes."""
    import sqlite3

    if isinstance(error, UnreadableError) or type(error) is sqlite3.DatabaseError:
        return True
    text = str(error)
    return isinstance(error, sqlite3.OperationalError) and (
        "malformed" in text or "no such table" in text or "no such column" in text
    )


def _storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    text = str(error)
    remedies = [remedy for fragment, remedy in _REMEDIES.items() if fragment in text]
    other = "Delete the file and run the command again: it is made anew from the run folders."
    return StorageError(f"Could not write the index of runs: {text} (`{path}`).", (*remedies, other)[0])


_READ_ONLY = "The folder cannot be written to. Check who owns it and whether its disk is mounted read-only."
_REMEDIES = {
    "full": "The disk or the quota is full. Make room there, then run the same command again.",
    "readonly": _READ_ONLY,
    "unable to open": _READ_ONLY,
    "locked": "Another Holdfast process has been writing to it for long. When it has ended, run this again.",
}
