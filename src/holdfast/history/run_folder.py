"""The near folders of runs: given an id, written whole, found again.

A run folder is made in two steps. `reserve` takes the id by making `runs/<id>.new`, which no other process
can make too; `commit` writes the files there and renames the folder to `runs/<id>`: it is whole or not there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.codec import Malformed, decode, encode, recover
from holdfast.errors import StorageError, UnknownName, UsageError, nearest
from holdfast.farside.system.folders import remove_folder
from holdfast.frozen import dataclass
from holdfast.model import RECORD_FORMAT, ClockTime, Place, Submission
from holdfast.regular_files import LARGEST_RECORD, NotJson, odd_entry_in, read_json, what_is_odd
from holdfast.whole_files import move, storage_error, sync_folder, write_durably, write_whole
from holdfast.written_files import LeftThere

SUBMISSION = "submission.json"
PLAN = "plan.json"
CONFIGURATION = "configuration.json"
HOST = "host.json"
"""Where the run may have been started, written before it is; and how far that host's clock is off."""
COLLECTED = "collected.json"
"""Written last: the run has ended and its outputs are at home."""
ABANDONED = "abandoned.json"
"""The run was given up: when, and why its host could not be asked."""
WITHIN = ("metrics", ".incoming")
"""Folders of a run in which its files lie too. What a script wrote, links among it, is in those of
`written_files.FOLDERS`."""
NEWEST = 5
"""Runs that are named if one is not found."""


@dataclass(frozen=True)
class _HostRecord:
    """What `host.json` says that is asked for."""

    machine: str = ""
    folder: str = ""
    node: str = ""
    clock_offset: ClockTime | None = None
    boot: str = ""
    run_ahead: ClockTime | None = None


class RunFolders:
    """All runs of one project. `state` is the project's `.holdfast`; it need not exist before a run."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.root = state / "runs"
        self._plain: set[str] = set()
        """Runs whose folders hold no link; looked at once."""

    def reserve(self, prefix: str, now: float) -> str:
        """Take a new run id, `<prefix>_<epoch ms>`. No two callers get the same, also in different processes."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers(now)
            # Above all others, whatever the clock says: the id is the order in which runs were made.
            milliseconds = max(int(now * 1000), self._highest() + 1)
            while True:
                run_id = f"{_safe(prefix)}_{milliseconds}"
                if self._take(run_id):
                    return run_id
                milliseconds += 1
        except OSError as error:
            raise storage_error(error, "make a folder for the run", self.root) from error

    def _highest(self) -> int:
        """The number of the newest id, also of one that is only reserved."""
        return max((order_of(name.removesuffix(".new")) for name in os.listdir(self.root)), default=0)

    def claim(self, run_id: str) -> bool:
        """Take the id of a run that is imported. False if it is here already, or another process is importing it."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            return self._take(run_id)
        except OSError as error:
            raise storage_error(error, "make a folder for the run", self.root) from error

    def commit(
        self, run_id: str, submission: Submission, plan: Mapping[str, Any], configuration: Mapping[str, Any]
    ) -> Path:
        """Write the run's files and let the folder appear. When this raises, nothing of the run is left."""
        draft = self.draft(run_id)
        values = {SUBMISSION: encode(submission), PLAN: plan, CONFIGURATION: configuration}
        contents = {name: json.dumps(value, indent=1).encode("ascii") for name, value in values.items()}
        try:
            for name, data in contents.items():
                write_durably(draft / name, data + b"\n")
            sync_folder(draft)
            move(draft, self.path(run_id))
        except OSError as error:
            self.abandon(run_id)
            raise storage_error(error, f"write the record of run `{run_id}`", draft) from error
        sync_folder(self.root)
        return self.path(run_id)

    def abandon(self, run_id: str) -> None:
        """Give a reserved id back. A repeat is success; a committed run is not touched."""
        _remove_tree(self.draft(run_id))

    def path(self, run_id: str) -> Path:
        """The folder of the run, which need not be there: the one way to its files. Raises StorageError where it is a
        link, or has one or a pipe where a file of Holdfast's lies: git and other programs can put one there."""
        folder = self._place(run_id)
        if run_id not in self._plain:
            odd = odd_entry_in(folder, WITHIN)
            if odd is not None:
                raise StorageError(*what_is_odd(odd))
            self._plain.add(run_id)
        return folder

    def _place(self, run_id: str) -> Path:
        return self.root / run_id

    def all_ids(self) -> tuple[str, ...]:
        """Every run, oldest first."""
        return tuple(sorted(self.names(), key=_age))

    def names(self) -> frozenset[str]:
        """Every run in no order: in half the time of `all_ids`."""
        try:
            found = os.listdir(self.root)
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError as error:
            raise storage_error(error, "list the runs", self.root) from error
        return frozenset(name for name in found if not (name.endswith(".new") or name[0] == "."))

    def resolve(self, text: str) -> str:
        """The run that a person means: a whole id, the beginning or the end of exactly one, or `last`."""
        ids = self.all_ids()
        if text in ids:
            return text
        if text == "last" and ids:
            return next((each for each in reversed(ids) if not self._is_preparation(each)), ids[-1])
        found = [each for each in ids if text and (each.startswith(text) or each.endswith(text))]
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(found[-5:][::-1]) + (" …" if len(found) > 5 else "")
            raise UsageError(f"`{text}` could be any of {len(found)} runs.", f"Give more of the id: {shown}")
        raise _unknown(text, ids)

    def newest(self) -> str | None:
        """The newest run, also if it is a preparation, which `last` does not mean."""
        return next(reversed(self.all_ids()), None)

    def _is_preparation(self, run_id: str) -> bool:
        """Whether the run only built an environment."""
        return self._known(run_id, SUBMISSION).get("script_name") == ""

    def is_collected(self, run_id: str) -> bool:
        return (self._place(run_id) / COLLECTED).exists()

    def outputs_are_left(self, run_id: str) -> bool:
        """Whether the outputs of a collected run are on its host only."""
        return self._known(run_id, COLLECTED).get("outputs_left") is True

    def left_there(self, run_id: str) -> LeftThere:
        """Files of a collected run that stayed on its host."""
        left = self._known(run_id, COLLECTED).get("left")
        return recover(LeftThere, left) if isinstance(left, dict) else LeftThere()

    def is_only_there(self, run_id: str) -> bool:
        """Whether something that a collected run wrote is on its host only."""
        return self.outputs_are_left(run_id) or self.left_there(run_id).count > 0

    def notes_at_home(self, run_id: str) -> tuple[str, ...]:
        """What was told when the run's files came home: which of them did not, and why."""
        notes = self._known(run_id, COLLECTED).get("notes")
        return tuple(each for each in notes if isinstance(each, str)) if isinstance(notes, list) else ()

    def why_abandoned(self, run_id: str) -> str | None:
        """Why the host could not be asked when the run was given up; None if it was not."""
        if not os.path.lexists(self._place(run_id) / ABANDONED):
            return None
        why = self._known(run_id, ABANDONED).get("why")
        return why if isinstance(why, str) and why else "no reason is known"

    def write_abandoned(self, run_id: str, why: str, now: float) -> None:
        """Give the run up here. Nothing that its host wrote is touched. A repeat keeps the newer reason."""
        path = self.path(run_id) / ABANDONED
        try:
            write_whole(path, json.dumps({"format": RECORD_FORMAT, "t": now, "why": why}).encode("ascii") + b"\n")
        except OSError as error:
            raise storage_error(error, f"write the record of run `{run_id}`", path) from error

    def take_up_again(self, run_id: str) -> None:
        """The host answers again, so what it says counts. Success also if the run was not given up."""
        with contextlib.suppress(OSError):
            (self.path(run_id) / ABANDONED).unlink(missing_ok=True)

    def clock_offset(self, run_id: str) -> float | None:
        """Seconds by which the clock of the run's host was ahead of this machine's; None if it is this machine's."""
        return recover(_HostRecord, self._known(run_id, HOST)).clock_offset

    def run_ahead(self, run_id: str, boot: str) -> float | None:
        """Seconds by which the run's clock is ahead of the time since this machine's start `boot`; None if its host
        has not been heard since."""
        found = recover(_HostRecord, self._known(run_id, HOST))
        return found.run_ahead if found.boot == boot else None

    def place(self, run_id: str) -> Place | None:
        """The only place where the run can have been started. None: it was never sent, or its machine could not be
        identified."""
        found = recover(_HostRecord, self._known(run_id, HOST))
        return Place(found.machine, found.folder, found.node) if found.machine else None

    def host_name(self, run_id: str) -> str:
        """The host that the run was sent to or imported from, as its target named it then; empty if that is unknown."""
        return str(self._known(run_id, HOST).get("host", ""))

    def write_place(self, run_id: str, host: str, place: Place) -> None:
        """Raises StorageError: a run whose place is unknown must not be started."""
        about = {"host": host, "machine": place.machine, "folder": place.folder, "node": place.node}
        try:
            self._write_host(run_id, about)
        except OSError as error:
            raise storage_error(error, f"write the record of run `{run_id}`", self.path(run_id)) from error

    def write_clock(self, run_id: str, host: str, offset: float, uncertainty: float) -> None:
        """Of another machine. If it cannot be written, times are shown as the host has them."""
        with contextlib.suppress(OSError):
            self._write_host(run_id, {"host": host, "clock_offset": offset, "uncertainty": uncertainty})

    def write_run_ahead(self, run_id: str, boot: str, ahead: float) -> None:
        """If it cannot be written, how long the run has been going on is told by the clocks of both machines."""
        with contextlib.suppress(OSError):
            self._write_host(run_id, {"boot": boot, "run_ahead": ahead})

    def submission(self, run_id: str) -> Submission:
        data = self._object(run_id, SUBMISSION)
        try:
            return recover(Submission, data)
        except Malformed as error:
            raise _damaged(self.path(run_id) / SUBMISSION, str(error), data) from error

    def plan(self, run_id: str) -> dict[str, Any]:
        return self._object(run_id, PLAN)

    def configuration(self, run_id: str) -> dict[str, Any]:
        return self._object(run_id, CONFIGURATION)

    def includes(self, run_id: str) -> tuple[str, ...]:
        """The globs of ignored files that shipped with it; none where the record cannot be read."""
        written = self._known(run_id, CONFIGURATION).get("run_configuration")
        globs = written.get("include") if isinstance(written, dict) else None
        return tuple(each for each in globs if isinstance(each, str)) if isinstance(globs, list) else ()

    def draft(self, run_id: str) -> Path:
        """Where a reserved run is being written; `commit` renames it."""
        return self.root / f"{run_id}.new"

    def _known(self, run_id: str, name: str) -> dict[str, Any]:
        """What a file of the run holds; empty if it cannot be read."""
        try:
            data = read_json(self.path(run_id) / name, LARGEST_RECORD, follows_link=False)
            return recover(dict[str, Any], data)
        except (OSError, StorageError, ValueError):
            return {}

    def _write_host(self, run_id: str, about: Mapping[str, Any]) -> None:
        """Adds to what is known; whole or not at all."""
        path = self.path(run_id) / HOST
        data = {**self._known(run_id, HOST), "format": RECORD_FORMAT, **about}
        write_whole(path, json.dumps(data).encode("ascii") + b"\n")

    def _take(self, run_id: str) -> bool:
        draft = self.draft(run_id)
        try:
            draft.mkdir()
        except FileExistsError:
            return False
        # Only now: while the draft is ours no other process can commit this id, so the answer stays true.
        if os.path.lexists(self._place(run_id)):
            draft.rmdir()
            return False
        return True

    def _remove_leftovers(self, now: float) -> None:
        """Drafts of processes that died between `reserve` and `commit`."""
        for entry in os.scandir(self.root):
            if entry.name.endswith(".new"):
                with contextlib.suppress(OSError):  # another process may be removing it too
                    if entry.stat(follow_symlinks=False).st_mtime < now - _LEFTOVER_AGE:
                        _remove_tree(self.root / entry.name)

    def _object(self, run_id: str, name: str) -> dict[str, Any]:
        data = self._read(run_id, name)
        if not isinstance(data, dict):
            raise _damaged(self.path(run_id) / name, "it is not a JSON object", data)
        try:
            return decode(dict[str, Any], data)
        except Malformed as error:
            raise _damaged(self.path(run_id) / name, str(error), data) from error

    def _read(self, run_id: str, name: str) -> object:
        path = self.path(run_id) / name
        try:
            return read_json(path, LARGEST_RECORD, follows_link=False)
        except (FileNotFoundError, NotADirectoryError) as error:
            if not self.path(run_id).is_dir():
                raise _unknown(run_id, self.all_ids()) from error
            raise _damaged(path, "it is missing", None) from error
        except OSError as error:
            raise storage_error(error, f"read the record of run `{run_id}`", path) from error
        except NotJson as error:
            raise _damaged(path, "it is not JSON", None) from error


_LEFTOVER_AGE = 24 * 3600.0


def _safe(prefix: str) -> str:
    """Run ids become names of folders and of containers: letters, digits, `-`, `_`, and dots inside."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", prefix).strip("._-")[:48] or "run"


def order_of(run_id: str) -> int:
    """Runs in the order in which they were made: by the milliseconds of their ids, whatever the prefix. 0 for a folder
    that is no run."""
    digits = run_id.rpartition("_")[2]
    return int(digits) if len(digits) <= _DIGITS and digits.isdecimal() and digits.isascii() else 0


_DIGITS = 15
"""Until the year 33658."""


def _age(run_id: str) -> tuple[int, str]:
    return order_of(run_id), run_id


def _remove_tree(path: Path) -> None:
    with contextlib.suppress(OSError):
        remove_folder(os.fspath(path))


def _unknown(text: str, ids: tuple[str, ...]) -> UnknownName:
    if not ids:
        return UnknownName("run", text, (), "Nothing has been run yet: holdfast experiment submit SCRIPT")
    guess = nearest(text, ids)
    shown = {*ids[-NEWEST:], *([guess] if guess else [])}
    return UnknownName("run", text, shown, f"{len(ids)} in all: holdfast history list")


def _damaged(path: Path, why: str, data: object) -> StorageError:
    version = data.get("format") if isinstance(data, dict) else None
    if isinstance(version, int) and version > RECORD_FORMAT:
        hint = f"A later version of Holdfast wrote it (format {version}, not {RECORD_FORMAT}): update Holdfast."
    else:
        hint = "The run's other files may still be good; they are plain files in the same folder."
    return StorageError(f"`{path}` cannot be read: {why}.", hint)
