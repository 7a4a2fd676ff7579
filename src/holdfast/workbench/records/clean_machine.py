"""Cleaning a machine from anywhere: the ended runs of all projects there, and what no run needs any more.

What a run wrote is at home if its project is on this laptop and says so. Of other projects it is not known, so their
runs stay unless the user says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import HoldfastError, NotAvailable
from holdfast.frozen import dataclass
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.hosts.replies import KnownRun
from holdfast.model import IMPORTED
from holdfast.project.compute import compute_names
from holdfast.project.folder import BUILTIN, Project
from holdfast.project.known_projects import known_projects
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.named_machines import host_of_target
from holdfast.workbench.records.clean import Rubbish, bring_home, clean_rest, clean_runs, remove
from holdfast.workbench.records.refresh import HostRuns


@dataclass(frozen=True)
class Machine:
    """`name` is what the user calls it."""

    name: str
    host: Host


@dataclass(frozen=True)
class ProjectThere:
    """A project with runs on a machine: either `ours`, whose records `project` has at home, or, without a project,
    `strangers`, which no record here is about."""

    id: str
    name: str
    project: Project | None
    ours: tuple[str, ...]
    strangers: tuple[str, ...]

    @property
    def runs(self) -> int:
        return len(self.ours) + len(self.strangers)


def survey(machine: Machine, context: Context) -> list[ProjectThere]:
    """Which runs the machine has, by project: those of projects on this laptop first."""
    at_home = known_projects(context.home, context.account)
    with machine.host.connect() as connection:
        names = {each.id: each.name for each in Client(connection).known_projects()}
        runs: dict[str, list[KnownRun]] = {}
        for run in _runs(connection):
            runs.setdefault(run.project_id, []).append(run)
    found: list[ProjectThere] = []
    for project_id, every in runs.items():
        left = every
        for project in (each for each in at_home if each.id == project_id):  # copies of a project share its id
            ours = _ours(project, left)
            taken = frozenset(ours)
            left = [run for run in left if run.run_id not in taken]
            found += [ProjectThere(project_id, project.name, project, ours, ())] if ours else []
        strangers = tuple(run.run_id for run in left)
        found += [ProjectThere(project_id, names.get(project_id, ""), None, (), strangers)] if strangers else []
    return sorted(found, key=lambda each: (each.project is None, each.name))


def clean_machine(
    machine: Machine, found: Sequence[ProjectThere], rubbish: Rubbish, context: Context
) -> Iterator[events.Event]:
    """`rubbish` names no runs: those in `found` go, as far as they ended and what they wrote is at home."""
    with machine.host.connect() as connection:
        for each in found:
            if each.project is not None:
                yield from _clean_project(machine, connection, each.project, each.ours, rubbish, context)
            if each.strangers and rubbish.discard:
                named = [(run, {"project": each.id, "run": run}) for run in each.strangers]
                yield from (event for event in remove(connection, named) if event.size or event.kept)
            elif each.strangers:
                yield _kept(each)
        yield from clean_rest(connection, rubbish)


def clean_environments(project: Project, rubbish: Rubbish, context: Context) -> Iterator[events.Event]:
    """On the machines of all targets, this one first. `rubbish` names no runs: they and their contents stay."""
    for name in sorted(compute_names(project.configuration_folders), key=lambda name: name != BUILTIN):
        try:
            yield from clean_environments_of(host_of_target(project, name, context), rubbish)
        except NotAvailable:
            continue  # nothing of ours is there
        except HoldfastError as error:
            yield events.Warned(f"{name} was left as it is: {error.message}", error.hint)


def clean_environments_of(host: Host, rubbish: Rubbish) -> Iterator[events.Event]:
    with host.connect() as connection:
        yield from clean_rest(connection, rubbish)


def _runs(connection: Connection) -> Iterator[KnownRun]:
    after: list[str] | None = None
    while True:
        page = Client(connection).known_runs(None, None, after)
        yield from page.runs
        if not page.more or not page.runs:
            return
        after = [page.runs[-1].project_id, page.runs[-1].run_id]


def _ours(project: Project, runs: Sequence[KnownRun]) -> tuple[str, ...]:
    folders = RunFolders(project.state_directory)
    known = set(folders.all_ids())
    return tuple(run.run_id for run in runs if run.run_id in known and _is_ours(folders, run))


def _is_ours(folders: RunFolders, run: KnownRun) -> bool:
    """An imported run may not be yet where it was submitted."""
    try:
        submission = folders.submission(run.run_id)
    except HoldfastError:
        return False
    return submission.generation == run.generation and IMPORTED not in submission.properties


def _clean_project(
    machine: Machine,
    connection: Connection,
    project: Project,
    runs: Sequence[str],
    rubbish: Rubbish,
    context: Context,
) -> Iterator[events.Event]:
    sessions = [Session(project, run, machine.host, context) for run in runs]
    yield from bring_home(HostRuns(machine.host, machine.name, sessions), connection)
    yield from clean_runs(connection, RunFolders(project.state_directory), sessions, rubbish)


def _kept(there: ProjectThere) -> events.Removed:
    count = len(there.strangers)
    runs = there.strangers[0] if count == 1 else f"{count} runs, {there.strangers[0]} and others"
    of = f"of {there.name or 'a project without a name'}"
    why = "this machine has no record of them" if count > 1 else "this machine has no record of it"
    return events.Removed(f"{runs} ({of})", 0, f"{why}, so what was written may exist only there", is_only_copy=True)
