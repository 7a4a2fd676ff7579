"""The index of a project's runs: quick to search, never the only place of a fact.

Every use compares it with the run folders first and takes in what is new, gone or unfinished there. So a
missing, damaged or outdated index is put right, and a run recorded while it could not be written is found.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.codec import decode, encode
from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass, replace
from holdfast.history.database import Database, transaction
from holdfast.history.queries import MetricCondition, run_as_dict
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders, order_of
from holdfast.model import Run, Status
from holdfast.written_files import LeftThere

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True)
class Filter:
    """Which runs to list; None is any."""

    script: str | None = None
    target: str | None = None
    status: Status | None = None
    parent: str | None = None


EVERY = Filter()


@dataclass(frozen=True)
class RunListing:
    """`total` counts all runs that match; `unreadable` names folders that cannot be read as runs.

    `has_unfinished`: a run of the project, matching or not, has not ended or is not at home.
    """

    runs: tuple[Run, ...]
    total: int
    unreadable: tuple[str, ...] = ()
    has_unfinished: bool = False


@dataclass(frozen=True)
class Documents:
    """Runs as the dicts of `queries.run_as_dict`, for `-o json` and `--query`; the rest as in `RunListing`."""

    documents: tuple[dict[str, Any], ...]
    unreadable: tuple[str, ...] = ()
    has_unfinished: bool = False


class Index:
    """`state` is the project's `.holdfast`."""

    def __init__(self, state: Path) -> None:
        self._folders = RunFolders(state)
        self._database = Database(state)

    def next_run_number(self, script_name: str, run_id: str) -> int:
        """The next number of this script. The same run always gets the same one, and no other run does."""

        def take(connection: sqlite3.Connection) -> int:
            self._synchronize(connection, unfinished=False)
            with transaction(connection):
                found = connection.execute("SELECT number FROM numbers WHERE run_id = ?", (run_id,)).fetchone()
                if found is not None:
                    return int(found[0])
                script = _storable(script_name)
                last = "SELECT coalesce(max(number), 0) FROM numbers WHERE script = ?"
                number = int(connection.execute(last, (script,)).fetchone()[0]) + 1
                connection.execute("INSERT INTO numbers VALUES (?, ?, ?)", (script, number, run_id))
                return number

        return self._database.write(take)

    def look(self, limit: int | None = None, only: Filter = EVERY) -> RunListing:
        """The newest tracked runs, without `packages`, `other_files` and `left`: `records.read_run` has them."""
        condition, values = _condition(only)

        def select(connection: sqlite3.Connection) -> RunListing:
            unreadable = self._synchronize(connection)
            matching = f"FROM runs WHERE tracked = 1{condition}"
            newest = f"SELECT record {matching} ORDER BY created DESC, run_id DESC LIMIT ?"
            rows = connection.execute(newest, (*values, -1 if limit is None else limit)).fetchall()
            total = connection.execute(f"SELECT count(*) {matching}", values).fetchone()[0]
            runs = tuple(decode(Run, json.loads(record)) for (record,) in rows)
            return RunListing(runs, int(total), unreadable, _has_unfinished(connection))

        return self._database.read(select)

    def list(self, limit: int | None = None, only: Filter = EVERY) -> Sequence[Run]:
        return self.look(limit, only).runs

    def documents(
        self, limit: int | None = None, only: Filter = EVERY, metrics: tuple[MetricCondition, ...] = ()
    ) -> Documents:
        """The newest tracked runs as dicts, kept in the index as they are shown. `metrics` narrows them."""
        condition, values = _condition(only)
        for each in metrics:
            condition += " AND run_id IN (SELECT run_id FROM metrics WHERE name = ?"
            condition += f" AND value {each.operator} ?)" if each.operator else ")"
            values = (*values, _storable(each.name), *((each.number,) if each.operator else ()))

        def select(connection: sqlite3.Connection) -> Documents:
            unreadable = self._synchronize(connection)
            newest = f"SELECT shown FROM runs WHERE tracked = 1{condition}"  # noqa: S608 - names and operators are ours
            newest += " ORDER BY created DESC, run_id DESC LIMIT ?"
            rows = connection.execute(newest, (*values, -1 if limit is None else limit)).fetchall()
            found = json.loads("[" + ",".join(shown for (shown,) in rows) + "]")  # one call of the parser
            return Documents(tuple(found), unreadable, _has_unfinished(connection))

        return self._database.read(select)

    def unfinished(self, abandoned: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
        """Run id and target of every run, tracked or not, that has not ended or is not at home; of abandoned ones only
        those in `abandoned`."""
        wanted = [run for run in self._unsettled() if run.status is not Status.ABANDONED or run.run_id in abandoned]
        return tuple((run.run_id, run.submission.target) for run in wanted)

    def abandoned(self) -> tuple[tuple[str, str], ...]:
        """Run id and target of every run that was given up and not heard of since."""
        wanted = [run for run in self._unsettled() if run.status is Status.ABANDONED]
        return tuple((run.run_id, run.submission.target) for run in wanted)

    def renew(self, run_id: str) -> None:
        """Read an ended run again, because something in its folder has changed."""

        def store(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                for run in self._read_all((run_id,))[0]:
                    self._store(connection, run)

        self._database.write(store)

    def rebuild(self) -> int:
        """Rebuild the index from the run folders. Returns how many runs there are."""

        def refill(connection: sqlite3.Connection) -> int:
            import sqlite3

            if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("the check found damage")
            with transaction(connection):
                connection.execute("DELETE FROM runs")
                connection.execute("DELETE FROM metrics")
                connection.execute("DELETE FROM seen")
            self._synchronize(connection)
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])

        return self._database.write(refill)

    def _unsettled(self) -> tuple[Run, ...]:
        def select(connection: sqlite3.Connection) -> tuple[Run, ...]:
            self._synchronize(connection)
            rows = connection.execute("SELECT record FROM runs WHERE settled = 0 ORDER BY created, run_id")
            return tuple(decode(Run, json.loads(record)) for (record,) in rows)

        return self._database.read(select)

    def _synchronize(self, connection: sqlite3.Connection, unfinished: bool = True) -> tuple[str, ...]:
        """Make the index agree with the folders. Returns the names of folders that cannot be read as runs.

        A run that has ended and is collected does not change: only new folders and unfinished runs are read. If nothing
        has changed, nothing is written and no lock taken.
        """
        gone: set[str] = set()
        fresh: tuple[Run, ...] = ()
        unreadable: tuple[str, ...] = ()
        folder_time = self._folder_time()
        seen = connection.execute("SELECT folder_time FROM seen").fetchone()
        if folder_time is None or seen is None or seen[0] != folder_time:
            known = {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs")}
            present = self._folders.names()
            gone = known - present
            fresh, unreadable = self._read_all(present - known)
        if unfinished:
            moving = self._read_all(self._may_have_changed(connection) - gone)[0]
            fresh += tuple(run for run in moving if self._differs(connection, run))
        is_new_time = folder_time is not None and not unreadable and (seen is None or seen[0] != folder_time)
        if gone or fresh or is_new_time:
            with transaction(connection):
                if is_new_time:
                    connection.execute("DELETE FROM seen")
                    connection.execute("INSERT INTO seen VALUES (?)", (folder_time,))
                for run_id in gone:
                    _forget(connection, run_id)
                for run in fresh:
                    self._store(connection, run)
        return unreadable

    def _folder_time(self) -> int | None:
        """When a run folder was last made, renamed or removed; None while that is so recent that the next change could
        have the same time."""
        try:
            changed = os.stat(self._folders.root).st_mtime_ns
        except OSError:
            return None
        return changed if time.time_ns() - changed > _FRESH else None

    def _may_have_changed(self, connection: sqlite3.Connection) -> set[str]:
        """Runs that have not ended, and ended ones that came home since: their last metrics may be new."""
        unsettled = connection.execute("SELECT run_id, final FROM runs WHERE settled = 0")
        return {run_id for run_id, final in unsettled if not final or self._folders.is_collected(run_id)}

    def _read_all(self, run_ids: Iterable[str]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
        found, unreadable = [], []
        for run_id in sorted(run_ids):
            try:
                run = read_run(self._folders, run_id)
            except HoldfastError:
                unreadable.append(run_id)
                continue
            if run.run_id == run_id:
                found.append(run)
            else:  # a folder that was copied under another name is not a run of its own
                unreadable.append(run_id)
        return tuple(found), tuple(unreadable)

    def _store(self, connection: sqlite3.Connection, run: Run) -> None:
        submission = run.submission
        # A reader of old files that comes late must not undo the end of a run: its row is left as it is.
        changed = connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
            " created = excluded.created, script = excluded.script, target = excluded.target,"
            " status = excluded.status, final = excluded.final, settled = excluded.settled,"
            " tracked = excluded.tracked, parent = excluded.parent, record = excluded.record, shown = excluded.shown"
            " WHERE excluded.final >= runs.final",
            (
                run.run_id,
                order_of(run.run_id) / 1000 or submission.created,
                _storable(submission.script_name),
                _storable(submission.target),
                run.status.value,
                run.status.is_final,
                self._is_settled(run),
                submission.tracked,
                None if submission.parent_run_id is None else _storable(submission.parent_run_id),
                _record(run),
                json.dumps(run_as_dict(run), separators=(",", ":")),
            ),
        )
        if changed.rowcount > 0:
            _store_metrics_and_number(connection, run)

    def _differs(self, connection: sqlite3.Connection, run: Run) -> bool:
        row = connection.execute("SELECT record, settled FROM runs WHERE run_id = ?", (run.run_id,)).fetchone()
        return row is None or row != (_record(run), int(self._is_settled(run)))

    def _is_settled(self, run: Run) -> bool:
        return run.status.is_final and self._folders.is_collected(run.run_id)


_FRESH = 2_000_000_000
"""Nanoseconds; coarser than the clock of any file system."""


def _has_unfinished(connection: sqlite3.Connection) -> bool:
    found = "SELECT EXISTS (SELECT 1 FROM runs WHERE settled = 0 AND status != ?)"
    return bool(connection.execute(found, (Status.ABANDONED.value,)).fetchone()[0])


def _store_metrics_and_number(connection: sqlite3.Connection, run: Run) -> None:
    connection.execute("DELETE FROM metrics WHERE run_id = ?", (run.run_id,))
    # Two names may become one where they hold bytes that are not text: the first stays.
    rows = [(run.run_id, _storable(name), _real(value)) for name, value in run.metrics.items()]
    connection.executemany("INSERT OR IGNORE INTO metrics VALUES (?, ?, ?)", rows)
    # Folders copied together from two places may hold a number twice; the later one changes nothing.
    connection.execute(
        "INSERT OR IGNORE INTO numbers VALUES (?, ?, ?)",
        (_storable(run.submission.script_name), run.submission.run_number, run.run_id),
    )


def _forget(connection: sqlite3.Connection, run_id: str) -> None:
    connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM metrics WHERE run_id = ?", (run_id,))


def _record(run: Run) -> str:
    return json.dumps(encode(replace(run, packages=(), other_files=(), left=LeftThere())), separators=(",", ":"))


def _condition(only: Filter) -> tuple[str, tuple[str, ...]]:
    status = None if only.status is None else only.status.value
    wanted = {"script": only.script, "target": only.target, "status": status, "parent": only.parent}
    given = {column: _storable(value) for column, value in wanted.items() if value is not None}
    return "".join(f" AND {column} = ?" for column in given), tuple(given.values())


def _storable(text: str) -> str:
    """SQLite holds UTF-8; names with other bytes in them (`os.fsdecode`) are kept in an escaped spelling."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _real(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
