"""Runs that were submitted elsewhere: the host has their records, so that run id and target are enough to see them here
too."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.codec import Malformed, recover
from holdfast.errors import HostError, ProjectError, UnknownName, UsageError
from holdfast.frozen import dataclass, replace
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.hosts.replies import FarProject, KnownRun, RunRecord
from holdfast.model import IMPORTED, Place, Submission
from holdfast.project.compute import ComputeTarget, compute_names
from holdfast.project.folder import Project, ensure_identity, ensure_state_directory
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.run_hosts import RunHosts
from holdfast.workbench.records.recover_snapshot import FarSnapshot, recover_snapshot
from holdfast.workbench.records.refresh import FETCHED_BY_THE_WAY, HostRuns, look

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\Z")


_MOST_RUNS = 1_000_000
"""That are held in memory."""


@dataclass(frozen=True)
class _FarRecord:
    """What the host has written down of a run. `configuration` is empty where it was lost there."""

    run: KnownRun
    plan: Mapping[str, Any]
    submission: Submission
    configuration: Mapping[str, Any]


def import_run(project: Project, run: str, target: str, context: Context) -> Iterator[events.Event]:
    """Bring the run that a user means by `run` from `target`, whichever project it belongs to."""
    with _Importer(project, target, context) as importer:
        found = importer.runs(None, run)
        whole = [each for each in found if each.run_id == run] or found
        if not whole:
            raise UsageError(
                f"There is no run `{run}`, neither here nor on `{target}`.",
                f"The runs that `{target}` has of this project: holdfast history import -t {pasted(target)}",
            )
        if len(whole) > 1:
            names = ", ".join(each.run_id for each in whole[:5]) + (" …" if len(whole) > 5 else "")
            raise UsageError(
                f"`{run}` could be any of {len(whole)} runs on `{target}`.", f"Give more of the id: {names}"
            )
        yield from importer.bring(whole, FETCHED_BY_THE_WAY)


def import_runs(
    project: Project, target: str, wanted: str | None, everything: bool, context: Context
) -> Iterator[events.Event]:
    """Bring the records of all runs that `target` has of a project: this one, or the one called `wanted` by name or id;
    with `everything`, of all. A run that is here already is left alone."""
    with _Importer(project, target, context) as importer:
        projects = importer.projects()
        chosen = projects if everything else [_chosen(project, target, wanted, projects)]
        yield from importer.bring([run for each in chosen for run in importer.runs(each.id)], None)


class _Importer:
    """One connection to the host of a target, and this project's folders."""

    def __init__(self, project: Project, target: str, context: Context) -> None:
        self._project, self._context = project, context
        self._target, self._host = _found(project, target, context)
        self._folders = RunFolders(project.state_directory)
        self._open: Connection | None = None

    def __enter__(self) -> _Importer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def projects(self) -> list[FarProject]:
        return list(self._far().known_projects())

    def runs(self, project_id: str | None, match: str | None = None) -> list[KnownRun]:
        found: list[KnownRun] = []
        after: list[str] | None = None
        while True:
            page = self._far().known_runs(project_id, match, after)
            found += page.runs
            if len(found) > _MOST_RUNS:
                raise HostError(
                    f"`{self._target.name}` lists more than {_MOST_RUNS:,} runs.",
                    "Name one: holdfast history import -r ID",
                )
            if not page.more or not page.runs:
                return [each for each in found if _RUN_ID.match(each.run_id) and not each.run_id.endswith(".new")]
            after = [found[-1].project_id, found[-1].run_id]

    def bring(self, runs: Sequence[KnownRun], limit: int | None) -> Iterator[events.Event]:
        """Record, snapshot, then everything that a look at the host brings. Of the snapshot at most `limit` bytes."""
        self._project = ensure_identity(self._project, self._context.user_home)
        ensure_state_directory(self._project, self._context.user_home)
        wanted = []
        for run in runs:
            if not self._folders.path(run.run_id).exists():
                wanted.append(run)
            elif self._folders.submission(run.run_id).generation != run.generation:
                yield events.Warned(
                    f"{run.run_id} was not imported: there is another run of that id here, which began at the same "
                    f"moment as the one on `{self._target.name}`.",
                    "Import it into another copy of the project.",
                )
        brought = []
        for run, record in self._records(wanted):
            if record is None:
                yield events.Warned(f"{run.run_id} was not imported: its record on `{self._target.name}` is damaged.")
            elif self._write(record):
                brought.append(run)
                yield events.Imported(run.run_id)
                yield from self._bring_snapshot(record, limit)
        yield from self._look(brought)

    def _far(self) -> Client:
        return Client(self._connection())

    def _connection(self) -> Connection:
        if self._open is None:
            self._open = self._host.connect()
        return self._open

    def _records(self, runs: list[KnownRun]) -> Iterator[tuple[KnownRun, _FarRecord | None]]:
        """With None for a record that is damaged."""
        left = list(runs)
        while left:
            answer = self._far().records([(each.project_id, each.run_id) for each in left])
            if not 0 < len(answer) <= len(left):
                raise HostError(f"`{self._target.name}` sent no records of its runs.", "Try again.")
            for run, data in zip(left, answer, strict=False):
                if data is not None:  # else it was removed meanwhile
                    yield run, _record(run, data)
            left = left[len(answer) :]

    def _write(self, record: _FarRecord) -> bool:
        """The run's folder, whole or not at all; with the name that its target has here. False: another process brought
        it first."""
        if not self._folders.claim(record.run.run_id):
            return False
        properties = {**record.submission.properties, IMPORTED: f"from {self._target.name}"}
        submission = replace(
            record.submission, target=self._target.name, target_type=self._target.type, properties=properties
        )
        self._folders.commit(record.run.run_id, submission, record.plan, record.configuration)
        if self._place is not None:
            self._folders.write_place(record.run.run_id, self._host.name, self._place)
        return True

    @functools.cached_property
    def _place(self) -> Place | None:
        return self._far().hello().wait().place

    def _bring_snapshot(self, record: _FarRecord, limit: int | None) -> Iterator[events.Event]:
        run, target = record.run, self._target.name
        snapshot = FarSnapshot(run.project_id, run.run_id, str(record.plan.get("snapshot", "")))
        got = recover_snapshot(self._connection(), self._project.state_directory / "objects", snapshot, limit)
        if got.left:
            yield events.Warned(
                f"The code of {run.run_id} ({format_size(got.left)}) was left on `{target}`.",
                "`project restore` and `compare` need it; nothing else does.",
            )
        if got.missing:
            yield events.Warned(
                f"The code of {run.run_id} is not on `{target}` any more, so that it cannot be restored or compared.",
            )

    def _look(self, runs: list[KnownRun]) -> Iterator[events.Event]:
        if not runs:
            return
        sessions = [Session(self._project, each.run_id, self._host, self._context) for each in runs]
        yield from look(HostRuns(self._host, self._target.name, sessions), self._connection, whole=())
        contacts.reached(self._project, self._host.name, self._context.now())


def _found(project: Project, name: str, context: Context) -> tuple[ComputeTarget, Host]:
    names = compute_names(project.configuration_folders)
    if name not in names:
        raise UnknownName("compute target", name, names, "To attach one: holdfast computetarget attach")
    return RunHosts(project, context).of_target(name)


def _chosen(project: Project, target: str, wanted: str | None, projects: list[FarProject]) -> FarProject:
    if not projects:
        raise ProjectError(
            f"`{target}` has no runs at all.",
            f"Is it the right account? holdfast computetarget show {pasted(target)}",
        )
    if wanted is None:
        found = [each for each in projects if each.id == project.id]
    else:
        found = [each for each in projects if wanted in (each.id, each.name)]
        found = found or [each for each in projects if len(wanted) >= 4 and each.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listed = "It has: " + ", ".join(str(each) for each in projects[:20]) + (" …" if len(projects) > 20 else "")
    if found:
        raise UsageError(f"`{target}` has {len(found)} projects called `{wanted}`.", f"{listed}\nName one by its id.")
    what = (
        f"no project `{wanted}`"
        if wanted is not None
        else f"no runs of this project (id {project.id or 'not given yet'})"
    )
    raise ProjectError(
        f"`{target}` has {what}.",
        f"{listed}\nTo bring those of one: holdfast history import -t {pasted(target)} --project ID",
    )


def _record(run: KnownRun, found: RunRecord) -> _FarRecord | None:
    """Of files on the host's disk, so they are checked."""
    try:
        submission = recover(Submission, found.submission)
    except Malformed:
        return None
    written = (found.plan.get("generation"), found.plan.get("run"), submission.run_id, submission.project_id)
    if written != (run.generation, run.run_id, run.run_id, run.project_id):
        return None
    return _FarRecord(run, found.plan, submission, found.configuration or {})
