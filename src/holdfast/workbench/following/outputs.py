"""Bringing a run's files home: outputs while it runs and after its end, and what else is asked for. Each file comes
whole or not at all, and what is here already is not fetched again."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from holdfast.errors import FarSideError, HostError, ProjectError, StateError, StorageError
from holdfast.farside.system.folders import walked
from holdfast.history.index import Index
from holdfast.history.run_folder import COLLECTED
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection, Push
from holdfast.model import IMPORTED, Reason
from holdfast.project.file_names import unstorable
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.whole_files import set_executable, write_whole
from holdfast.workbench.following.far_listing import (
    AT_HOME,
    GIVEN,
    WRITTEN,
    FarFile,
    choose,
    is_below,
    list_files,
    path_there,
    root_of,
)
from holdfast.workbench.following.kept_links import is_absolute, remove_leaving
from holdfast.workbench.following.session import Session, session_of
from holdfast.workbench.following.transfer import PARTS, FarRun, Receiver, WantedFile, make_way
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.written_files import ABOVE, FileSize, OutputWishes, folder_of_links

_MOST_NOTES = 100
_AT_ONCE = 64
"""Requests that are under way together."""
_MOST_LEFT = 1000
"""Files that stay on a machine and are named in the record."""
_SAME_TIME = 2000
"""Nanoseconds: some systems keep times no finer."""
Fetch = Callable[[str, Path], None]
"""Path as `history info` lists it, relative to the script's working directory, and where to put it."""


class TooLarge(Exception):
    """What has to come home has `size` bytes, more than were allowed; nothing was fetched."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def collect(session: Session, limit: int | None = None) -> Iterator[events.Event]:
    """For the run's writer: bring the outputs home once the run has ended. The folder is marked as collected last, so a
    broken attempt is made again; a repeat changes nothing. Raises TooLarge where more than `limit` bytes would travel.
    """
    run, folder = session.read(), session.folder
    if not run.status.is_final or session.folders.is_collected(run.run_id):
        return
    notes: list[str] = []
    are_left, left = False, list[FileSize]()
    if run.ending is None or run.ending.reason not in (Reason.NOT_STARTED, Reason.LOST):
        collector = collector_of(session, has_ended=True)
        try:
            wanted = (*WRITTEN, *GIVEN) if run.submission.fetch_outputs else GIVEN
            are_left = yield from collector.bring(wanted, run.submission.sync_outputs is not None, limit)
            left = collector.left
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            session.require_place()
            collector.notes.append(error.message)  # `clean` elsewhere was quicker
        except StorageError as error:
            raise _cannot_store(error.message, run.run_id) from error
        except OSError as error:
            raise _cannot_store(f"{folder}: {error.strerror}", run.run_id) from error
        notes = _first(collector.notes)
        if collector.errors:
            raise _cannot_store("; ".join(collector.errors[:5]), run.run_id)
    _mark_collected(folder, notes, are_left, left)
    for note in notes:
        yield events.Noted(note, run.run_id)
    _keep_lock(session)


@contextlib.contextmanager
def fetching(project: Project, run_id: str, context: Context) -> Iterator[Fetch]:
    """Fetch files of a run one by one, over one connection, which is made for the first."""
    session = session_of(project, run_id, context)
    # Here, a file of a run that has ended would be linked, and change with what a person does to the copy.
    far = _far_run(session, session.read().status.is_final and not session.host.is_here)

    def fetch(path: str, destination: Path) -> None:
        there = path_there(os.path.normpath(path).replace(os.sep, "/"))
        _check(path, there)
        try:
            if session.host.is_here:
                session.far().link(far.fields(), there, os.fspath(destination)).wait()
            else:
                receiver = Receiver(session.connection(), far, session.folder / PARTS)
                for _ in receiver.receive([WantedFile(there, destination, 0, destination.parent)]):
                    pass
                if receiver.errors:
                    raise StorageError(f"`{path}` could not be fetched: {receiver.errors[0]}.", "Try again.")
                if receiver.notes:
                    raise _gone(path, session.run_id)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            raise _gone(path, session.run_id) from error

    try:
        yield fetch
    finally:
        session.disconnect()


def bring_outputs_home(project: Project, run_id: str, context: Context) -> Iterator[events.Event]:
    """Bring home outputs that were left on the host, as those of any run. A repeat changes nothing."""
    session = session_of(project, run_id, context)
    if not session.folders.outputs_are_left(run_id):
        return
    with session.writing() as mine:
        if not mine:
            raise StateError(f"Another process is fetching the outputs of `{run_id}`.", "Wait for it, then try again.")
        collector = collector_of(session, has_ended=True)
        try:
            yield from collector.bring(WRITTEN)
        except OSError as error:
            raise _cannot_store(f"{session.folder}: {error.strerror}", run_id) from error
        if collector.errors:
            raise _cannot_store("; ".join(collector.errors[:5]), run_id)
        notes = _first(collector.notes)
        _mark_collected(session.folder, notes, False, collector.left)
        Index(project.state_directory).renew(run_id)
        for note in notes:
            yield events.Noted(note, run_id)


def left_there(project: Project, run_id: str, context: Context) -> tuple[FileSize, ...]:
    """Every file that does not come home by itself, as the run's machine lists it now: a record names the first."""
    session = session_of(project, run_id, context)
    try:
        listed = list_files(session.connection(), session.host.is_here, _far_run(session, True), [])
        written = [each for each in listed if root_of(each.path) in WRITTEN]
        return tuple(choose(written, session.submission.output_wishes).staying)
    finally:
        session.disconnect()


def collector_of(session: Session, has_ended: bool, other: Callable[[Push], object] = lambda push: None) -> Collector:
    far, wishes = _far_run(session, has_ended), session.submission.output_wishes
    return Collector(session.connection(), session.host.is_here, far, session.folder, other).wanting(wishes)


def _far_run(session: Session, has_ended: bool) -> FarRun:
    return FarRun(session.submission.project_id, session.run_id, has_ended, session.host.name)


def _keep_lock(session: Session) -> None:
    """From now on the spec means the versions that it was resolved to for this run. A run that was imported adds them
    where the project has none: what it asked for is its host's word, too."""
    if not (session.folder / "environment.json").exists():
        return
    from holdfast.environments.environment_plan import keep_lock, read_lock

    lock, plan = read_lock(session.folder / "environment.json"), session.folders.plan(session.run_id).get("environment")
    if lock is not None and isinstance(plan, dict) and plan.get("exact") is False:
        is_newer = plan.get("upgrade") is True and IMPORTED not in session.submission.properties
        with contextlib.suppress(OSError):  # it will be resolved again
            keep_lock(session.project.state_directory, lock, str(plan.get("spec")), replace=is_newer)


class Collector:
    """Brings files of one run home over one connection. `other` takes whatever else is pushed meanwhile. `left` are
    files that stay on their machine: no wish takes them in, or they cannot be kept here."""

    def __init__(
        self,
        connection: Connection,
        is_here: bool,
        run: FarRun,
        folder: Path,
        other: Callable[[Push], object] = lambda push: None,
    ) -> None:
        self._connection, self._is_here, self._run, self._folder = connection, is_here, run, folder
        self._receiver = Receiver(connection, run, folder / PARTS, other)
        self._wishes = OutputWishes()
        self.notes: list[str] = []
        self.left: list[FileSize] = []
        self.errors = self._receiver.errors

    def wanting(self, wishes: OutputWishes) -> Collector:
        self._wishes = wishes
        return self

    def bring(
        self, roots: tuple[str, ...], is_exact: bool = False, limit: int | None = None
    ) -> Generator[events.Event, None, bool]:
        """Fetch what differs from home in size or time, of the folders `roots`; returns whether others have something.
        `is_exact`: what an earlier look brought and is not there any more is removed here too."""
        listed = list_files(self._connection, self._is_here, self._run, self.notes)
        of_roots = [each for each in listed if root_of(each.path) in roots]
        chosen, self.left, reasons = choose(of_roots, self._wishes)
        self.notes += [f"`{path}` stays on its machine: {reason}." for path, reason in reasons.items()]
        is_whole = not self.notes
        files = [each for each in chosen if each.kind == "f" and not self._is_at_home(each)]
        size = sum(each.size for each in files)
        if limit is not None and size > limit and not self._is_here:
            raise TooLarge(size)
        wanted = [WantedFile(each.path, self._folder / each.near, each.size, self._folder) for each in files]
        yield from self._link_files(wanted) if self._is_here else self._receiver.receive(wanted)
        self.notes += self._receiver.notes
        refused = {each.path for each in self._receiver.refused}
        self.left += [each.named for each in files if each.path in refused]
        for each in chosen:  # last: no file is written through a link
            if each.kind == "l":
                self._make_link(each)
        for top in self._folders_of_links(roots):
            for path, target in remove_leaving(self._folder / top):
                self.notes.append(f"`{path}` is a link to `{target}`, which leads outside the folder: not fetched.")
        if is_exact and is_whole:
            self._remove_others({each.near for each in chosen}, [AT_HOME[root] for root in roots])
        return len(of_roots) < len(listed)

    def _is_at_home(self, each: FarFile) -> bool:
        try:
            status = os.lstat(self._folder / each.near)
        except (OSError, ValueError):
            return False
        is_same = status.st_size == each.size and abs(status.st_mtime_ns - each.mtime_ns) < _SAME_TIME
        if not stat.S_ISREG(status.st_mode) or not is_same:
            return False
        set_executable(self._folder / each.near, each.is_executable)
        return True

    def _link_files(self, files: list[WantedFile]) -> Iterator[events.Event]:
        """On the same machine: the far side puts each file here itself."""
        total, done, far, made = sum(each.size for each in files), 0, Client(self._connection), set[Path]()
        for begin in range(0, len(files), _AT_ONCE):
            some = files[begin : begin + _AT_ONCE]
            for each in some:
                make_way(each.destination, each.root, made)
            replies = [far.link(self._run.fields(), each.path, os.fspath(each.destination)) for each in some]
            for each, reply in zip(some, replies, strict=True):
                try:
                    reply.wait()
                except FarSideError as error:
                    if error.kind not in ("not-found", "refused"):
                        raise
                    self.notes.append(error.message)
                done += each.size
                yield events.Fetched(self._run.run_id, each.path, done, total)

    def _make_link(self, each: FarFile) -> None:
        """Links inside the folder come along; one that leaves it would mean something else here."""
        top = folder_of_links(each.near)
        name, near, destination = each.near.removeprefix(f"{top}/"), self._folder / top, self._folder / each.near
        resolved = os.path.normpath(os.path.join(destination.parent, each.target))
        inside = resolved == os.fspath(near) or resolved.startswith(os.fspath(near) + os.sep)
        if is_absolute(each.target) or not inside:
            self.notes.append(f"`{name}` is a link to `{each.target}`, outside the folder: not fetched.")
            return
        try:
            make_way(destination, self._folder)
            if destination.is_symlink() and os.readlink(destination) == each.target:
                return
            destination.unlink(missing_ok=True)
            os.symlink(each.target, destination)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self.notes.append(f"`{name}`, a link to `{each.target}`, cannot be made here: {reason}.")

    def _folders_of_links(self, roots: Sequence[str]) -> list[str]:
        """At home, those of the folders `roots` that no link may leave."""
        tops = [AT_HOME[root] for root in roots if root != ABOVE]
        above = self._folder / ABOVE
        if ABOVE in roots and os.path.isdir(above) and not above.is_symlink():
            tops += [f"{ABOVE}/{each}" for each in sorted(os.listdir(above))]
        return tops

    def _remove_others(self, listed: set[str], tops: list[str]) -> None:
        for top in tops:
            for place, _, names in reversed(list(walked(os.fspath(self._folder / top)))):
                for name in names:
                    if (Path(place) / name).relative_to(self._folder).as_posix() not in listed:
                        (Path(place) / name).unlink()
                with contextlib.suppress(OSError):
                    Path(place).rmdir()  # unless something is left in it


def _check(path: str, there: str) -> None:
    """Raises for a file, asked for by name, that cannot be one of a run's or cannot be kept here."""
    if not is_below(there):
        raise HostError(f"The far side names a file `{path}` that leaves the run's folder; nothing was written.")
    for reason in unstorable([there]).values():
        raise StorageError(f"`{path}` cannot be fetched: {reason}.", "Fetch it on another system, or rename it there.")


def _first(notes: list[str]) -> list[str]:
    left = len(notes) - _MOST_NOTES
    return notes if left <= 0 else [*notes[:_MOST_NOTES], f"{left} more files did not come home."]


def _mark_collected(folder: Path, notes: list[str], outputs_left: bool, left: list[FileSize]) -> None:
    """`outputs_left`: what the script wrote is on its host only, as was asked for; `left`: these files are."""
    there = {"files": left[:_MOST_LEFT], "count": len(left), "size": sum(each.size for each in left)}
    content = json.dumps({"format": 1, "notes": notes, "outputs_left": outputs_left, "left": there})
    try:
        write_whole(folder / COLLECTED, content.encode() + b"\n")
    except OSError as error:
        raise StorageError(f"`{folder}` cannot be written: {error.strerror}.", "Make room there.") from error


def _cannot_store(reason: str, run_id: str) -> StorageError:
    return StorageError(
        f"The outputs of `{run_id}` cannot be brought home: {reason}.",
        f"They are kept on their machine. Make room, then: holdfast logs -r {pasted(run_id)}",
    )


def _gone(path: str, run_id: str) -> ProjectError:
    return ProjectError(
        f"The run `{run_id}` has no file `{path}` any more, here or on its machine.",
        f"What it has: holdfast history info -r {pasted(run_id)}",
    )
