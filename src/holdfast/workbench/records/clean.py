"""Removing what runs left on their host. The record at home stays; a living run, unfetched outputs and what projects
share between runs are never touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.errors import FarSideError, HoldfastError, HostError, NotAvailable
from holdfast.frozen import dataclass, replace
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.hosts.replies import Swept, Trimmed
from holdfast.model import IMPORTED
from holdfast.project.compute import BUILTIN_LOCAL, compute_names
from holdfast.project.folder import Project
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.run_hosts import RunHosts
from holdfast.workbench.records.refresh import HostRuns, look, place_of, silent

_AT_ONCE = 32
"""Requests that are under way together."""
_NAMED = 5
"""Files that are only on a machine."""


@dataclass(frozen=True)
class CleanLimits:
    """Which environments may go: those that were not used for `older_than` seconds, and as many as it takes until
    environments and cache are below `keep` bytes."""

    older_than: float | None = None
    keep: int | None = None

    @property
    def are_none(self) -> bool:
        return self.older_than is None and self.keep is None


@dataclass(frozen=True)
class Rubbish:
    """What to remove. `runs` None: every ended run that this project submitted, on `target` if one is named, and from
    their hosts also contents and versions of the far side that no run needs; `environments`: also those that no run
    uses, or that the limits leave, and with `runs` None and without limits the installers' cache; without any runs only
    environments, from the hosts of all targets or of `target`; `discard`: also runs that wrote something which
    only their host has."""

    runs: tuple[str, ...] | None = None
    target: str | None = None
    environments: bool = False
    discard: bool = False
    limits: CleanLimits = CleanLimits()


def clean(project: Project, rubbish: Rubbish, context: Context) -> Iterator[events.Event]:
    """Host by host. One that cannot be reached is skipped with a warning, or is an error at the end where its target or
    a run on it was named. Gone already is success."""
    folders = RunFolders(project.state_directory)
    runs = folders.all_ids() if rubbish.runs is None else [folders.resolve(run) for run in rubbish.runs]
    hosts: dict[tuple[str, str], HostRuns] = {}
    of_project = RunHosts(project, context)
    if rubbish.target is not None and not rubbish.runs:
        _put(hosts, of_project.of_target(rubbish.target)[1], rubbish.target)
    elif not rubbish.runs and rubbish.runs is not None:
        yield from _put_all(hosts, project, of_project)
    imported = 0
    for run_id in runs:
        try:
            submission = folders.submission(run_id)
            if rubbish.target not in (None, submission.target):
                continue
            if rubbish.runs is None and IMPORTED in submission.properties:
                imported += 1
                continue
            host = of_project.of_run(run_id)
            _put(hosts, host, submission.target).sessions.append(Session(project, run_id, host, context))
        except HoldfastError as error:
            yield events.Warned(f"{run_id} was left as it is: {error.message}", error.hint)
    if imported:
        yield _left_imported(imported)
    failed: list[HostError] = []
    for each in hosts.values():
        try:
            with each.host.connect() as connection:
                yield from bring_home(each, connection)
                contacts.reached(project, each.host.name, context.now())
                yield from clean_runs(connection, folders, each.sessions, rubbish)
                yield from clean_rest(connection, rubbish)
        except HostError as error:
            warning = _warning(project, each, error, context)
            if failed or not (rubbish.target or rubbish.runs):
                yield warning
            else:
                failed.append(error)
    if failed:
        raise failed[0]


def _warning(project: Project, runs: HostRuns, error: HostError, context: Context) -> events.Event:
    """Remembers that a host could not be asked."""
    if isinstance(error, FarSideError):
        return events.Warned(f"{runs.target}: {error.message}", error.hint)
    return silent(project, runs.host, runs.target, error, context)


def _left_imported(count: int) -> events.Removed:
    if count == 1:
        name, they, it = "1 imported run", "it was", "it"
    else:
        name, they, it = f"{count} imported runs", "they were", "one"
    why = f"{they} submitted elsewhere, and may not have been fetched there yet; -r RUN removes {it}"
    return events.Removed(name, 0, why)


def _put_all(hosts: dict[tuple[str, str], HostRuns], project: Project, of_project: RunHosts) -> Iterator[events.Event]:
    """The hosts of all targets that are attached, this machine first."""
    for name in sorted(compute_names(project.configuration_folders), key=lambda name: name != BUILTIN_LOCAL.name):
        try:
            _put(hosts, of_project.of_target(name)[1], name)
        except NotAvailable:
            continue  # nothing of ours is there
        except HoldfastError as error:
            yield events.Warned(f"{name} was left as it is: {error.message}", error.hint)


def _put(hosts: dict[tuple[str, str], HostRuns], host: Host, target: str) -> HostRuns:
    return hosts.setdefault(place_of(host), HostRuns(host, target))


def bring_home(runs: HostRuns, connection: Connection) -> Iterator[events.Event]:
    """What has ended there since the last look."""
    unfinished = [each for each in runs.sessions if not each.folders.is_collected(each.run_id)]
    yield from look(replace(runs, sessions=unfinished), lambda: connection, whole=())


def clean_runs(
    connection: Connection, folders: RunFolders, sessions: Sequence[Session], rubbish: Rubbish
) -> Iterator[events.Event]:
    """A run that its host cannot judge goes only if it is named, and its outputs may go too."""
    run_ids = [session.run_id for session in sessions]
    left = [run_id for run_id in run_ids if folders.is_only_there(run_id) and not rubbish.discard]
    home = [run_id for run_id in run_ids if folders.is_collected(run_id) and run_id not in left]
    if rubbish.runs is not None and rubbish.discard:
        home += [session.run_id for session in sessions if session.problem and session.run_id not in home]
    for run_id in run_ids:
        if run_id in left:
            yield events.Removed(run_id, 0, _why_left(folders, run_id), is_only_copy=True)
        elif run_id not in home:
            yield events.Removed(run_id, 0, "it has not ended, or its outputs are not at home yet")
    wanted = [(run_id, {"project": folders.submission(run_id).project_id, "run": run_id}) for run_id in home]
    for removed in remove(connection, wanted):
        if removed.size or removed.kept:  # else it was gone already
            yield removed


def _why_left(folders: RunFolders, run_id: str) -> str:
    left = folders.left_there(run_id)
    if not left.count:
        fetch = f"holdfast history download -r {pasted(run_id)} -d DIR"
        return f"its outputs are only there; {fetch} or --discard-outputs"
    names = ", ".join(f"{each.path} ({format_size(each.size)})" for each in left.files[:_NAMED])
    more = f" and {left.count - _NAMED} more" if left.count > _NAMED else ""
    fetch = f"holdfast history download {pasted(run_id)} . -d DIR"
    return f"only there: {names}{more}; for a copy: {fetch}; to remove them all the same: --discard-outputs"


def clean_rest(connection: Connection, rubbish: Rubbish) -> Iterator[events.Event]:
    limits, far = rubbish.limits, Client(connection)
    if rubbish.environments:
        if limits.are_none:
            names = far.environments()
            yield from remove(connection, [(f"environment {name}", {"environment": name}) for name in names])
        yield from _trimmed(far.environment_trim(limits.older_than, limits.keep), limits)
    if rubbish.runs is None:
        yield from _swept(far.sweep(rubbish.environments and limits.are_none))


def _trimmed(trimmed: Trimmed, limits: CleanLimits) -> Iterator[events.Event]:
    yield from (events.Removed(name, size) for name, size in trimmed.removed)
    yield from (events.Removed(name, 0, why) for name, why in trimmed.kept)
    if limits.keep is not None and trimmed.left is not None and trimmed.left > limits.keep:
        message = f"Environments and package cache still take {format_size(trimmed.left)}."
        held = "What runs are using stays. The same again when they have ended."
        whole = "All of the package cache goes with: holdfast experiment clean --all --environments"
        yield events.Warned(message, held if trimmed.kept else whole)


def _swept(swept: Swept) -> Iterator[events.Removed]:
    yield from (events.Removed(_called(name, count), size) for name, count, size in swept.removed)
    yield from (events.Removed(_called(name, 1), 0, why) for name, why in swept.kept)


def _called(name: str, count: int) -> str:
    if name == "objects":
        return "1 file that no run needs" if count == 1 else f"{count} files that no run needs"
    if name == "cache":
        return "package cache"
    return name.replace("farside", "far side")


def remove(connection: Connection, wanted: Sequence[tuple[str, Mapping[str, str]]]) -> Iterator[events.Removed]:
    """Each by its name for people and what the far side calls it; several requests are under way at once."""
    for begin in range(0, len(wanted), _AT_ONCE):
        some = wanted[begin : begin + _AT_ONCE]
        replies = [Client(connection).remove(what) for _, what in some]
        for (name, _), reply in zip(some, replies, strict=True):
            try:
                yield events.Removed(name, reply.wait().removed)
            except FarSideError as error:
                if error.kind != "living":
                    raise
                yield events.Removed(name, 0, error.message)
