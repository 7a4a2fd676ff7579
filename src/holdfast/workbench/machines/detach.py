"""Detaching a target: its files here, Holdfast's own key on the host, and, if wanted, everything else of ours there;
and what that is, with sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import ConfigurationError, FarSideError, HostError, StateError
from holdfast.frozen import dataclass
from holdfast.history.index import Index
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.hosts.keys import Key, is_ours, own_keys, read_key, remove_key
from holdfast.hosts.replies import Inventory
from holdfast.project import compute
from holdfast.project.compute import CONTAINER_TYPES, REMOTE_TYPES, ComputeTarget, compute_names, examine_compute
from holdfast.project.folder import Project
from holdfast.project.known_projects import known_projects
from holdfast.shown_text import pasted
from holdfast.workbench.machines import target_files
from holdfast.workbench.machines.target_owners import TargetOwner
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import destination_of, host_of

KEY_STAYS = "key-stays"
"""The far side's word for a file of keys that it may not change."""


@dataclass(frozen=True)
class HowToDetach:
    """`force`: also while runs on it have not ended. `purge`: everything of Holdfast's on the machine goes too."""

    force: bool = False
    purge: bool = False


@dataclass(frozen=True)
class TargetDetached:
    """The last event of a detach. `others` are run configurations that still name the target."""

    removed: tuple[str, ...]
    others: tuple[str, ...]


def inventory(target: ComputeTarget, context: Context, may_ask: bool = True) -> Inventory:
    """What is on the target's host. Raises HostError when it cannot be asked."""
    with host_of(target, context).connect(may_ask) as connection:
        return Client(connection).sizes()


def before_purge(
    owner: TargetOwner, project: Project, name: str, context: Context, force: bool
) -> tuple[ComputeTarget, Inventory]:
    """What a purge would take. Raises what would keep it from being done, before the user is asked: what else is wrong
    with the target's file does not."""
    target, problems = examine_compute(owner.folders, name)
    if target is None or (target.type in REMOTE_TYPES and not target.address):
        raise ConfigurationError(problems)
    there = inventory(target, context)
    _refuse_living(project, name, there)
    _refuse_unfinished(owner, project, name, force)
    return target, there


def detach(
    owner: TargetOwner, project: Project, name: str, context: Context, how: HowToDetach
) -> Iterator[events.Event | TargetDetached]:
    """Refused while runs of this project on it are unfinished, unless forced; a purge is refused while any run lives
    there. A machine that cannot be reached keeps our key, and that is said; a purge of it is an error."""
    target, _ = examine_compute(owner.folders, name)
    if target is None:
        yield from _tell_of_keys(name, context)
    elif how.purge or target.type == "remote" or target.type in CONTAINER_TYPES:
        _refuse_unfinished(owner, project, name, how.force)
        yield from _leave(owner, target, context, how.purge)
    removed, others = target_files.detach(owner, project, name)
    yield TargetDetached(tuple(removed), tuple(others))


def _refuse_living(project: Project, name: str, there: Inventory) -> None:
    """No force does it: their files would go while they write them."""
    if not there.living:
        return
    count = "1 run is" if there.living == 1 else f"{there.living} runs are"
    own = sum(each.living for each in there.runs if each.project_id == project.id)
    unfinished, place = Index(project.state_directory).unfinished(), _place(project, name)
    waiting = [run for run, target in unfinished if target == name or _place(project, target) == place]
    remedies = []
    if own and waiting:
        ends = " && ".join(f"holdfast cancel -r {pasted(run)}" for run in waiting[:5])
        remedies.append(f"End {'it' if own == 1 else 'them'} first: {ends}")
    if there.living > own or not waiting:
        whose = "of other projects or laptops " if remedies else ""
        remedies.append(f"Runs {whose}have to end by themselves, or be cancelled where they were submitted.")
    raise StateError(f"Nothing is purged: {count} still alive in {there.home} on `{name}`.", "\n".join(remedies))


def _place(project: Project, name: str) -> tuple[str | int | None, ...] | None:
    """Where a target's runs are: targets may share a folder, as all of this machine do. None if it is not known."""
    target, _ = examine_compute(project.configuration_folders, name)
    if target is None:
        return None
    return (target.address, target.port, target.username, target.home) if target.type in REMOTE_TYPES else ()


def _refuse_unfinished(owner: TargetOwner, project: Project, name: str, force: bool) -> None:
    """Of a target of the account, runs of every project count that has none of its own by that name."""
    if force:
        return
    if not owner.is_account:
        _refuse_unfinished_of(project, name, ())
        return
    for each in known_projects(project.home):
        if name not in each.configuration_folders.of_project(compute.SUFFIX):
            _refuse_unfinished_of(each, name, () if each.root == project.root else ("--project", str(each.root)))


def _refuse_unfinished_of(project: Project, name: str, more: tuple[str, ...]) -> None:
    """`more`: words that a command needs to be about this project."""
    waiting = [run for run, target in Index(project.state_directory).unfinished() if target == name]
    folders = RunFolders(project.state_directory)
    left = [run for run in folders.all_ids() if folders.is_only_there(run)]
    left = [run for run in left if folders.submission(run).target == name]
    if left:
        everything = () if folders.outputs_are_left(left[0]) else (".",)
        fetch = ["holdfast", "history", "download", *more, "-r", left[0], "-d", "DIR", *everything]
        raise StateError(
            f"The outputs of {', '.join(left[:5])}{' …' if len(left) > 5 else ''} are on `{name}` only.",
            f"Fetch them: {' '.join(map(pasted, fetch))}\nTo leave or lose them: --force",
        )
    if waiting:
        count = "1 run has" if len(waiting) == 1 else f"{len(waiting)} runs have"
        look = ["holdfast", "status", *more, "-r", waiting[0]]
        raise StateError(
            f"{count} not ended on `{name}`, or not brought everything home: {', '.join(waiting[:5])}.",
            f"Look first: {' '.join(map(pasted, look))}. To detach it all the same: --force",
        )


def _leave(owner: TargetOwner, target: ComputeTarget, context: Context, purge: bool) -> Iterator[events.Event]:
    key = _own_key(owner, target, context)
    if not purge and key is None:
        return
    host = host_of(target, context)
    yield events.Doing(f"connecting to {host.name} …")
    try:
        with host.connect() as connection:
            if purge:
                yield from _purge(host, connection)
            if key is not None:
                yield from _take_key_away(host, connection, key)
    except HostError as error:
        if purge or isinstance(error, FarSideError):
            raise
        line = f" This line stays in ~/.ssh/authorized_keys over there: {key.line}" if key is not None else ""
        yield events.Warned(f"{error.message}{line}", "Remove it by hand, as it opens the account.")
    if key is not None:
        remove_key(key.path)


def _purge(host: Host, connection: Connection) -> Iterator[events.Event]:
    yield events.Doing(f"removing everything of Holdfast's on {host.name} …")
    purged = Client(connection).purge()
    yield events.Removed(f"Holdfast's folder on {host.name}", purged.removed)
    if purged.kept:
        shown = ", ".join(purged.kept[:5]) + (", …" if len(purged.kept) > 5 else "")
        yield events.Warned(
            f"What is not Holdfast's own stays there: {shown}", "Remove it by hand if it is not needed."
        )


def _take_key_away(host: Host, connection: Connection, key: Key) -> Iterator[events.Event]:
    try:
        Client(connection).deauthorize(key.body)
    except FarSideError as error:
        if error.kind != KEY_STAYS:
            raise
        yield events.Warned(f"{error.message} It is this line: {key.line}", error.hint)
    else:
        yield events.Done(f"took the key of Holdfast's own away from {host.name}")


def _tell_of_keys(name: str, context: Context) -> Iterator[events.Event]:
    """Of a target whose file cannot be read: which key is its, and on which machine, is not known any more."""
    keys = [read_key(path, context.environment) for path in own_keys(context.home, name)]
    for key in keys:
        if key is not None:
            yield events.Warned(
                f"{name}{compute.SUFFIX} cannot be read, so no machine was asked. A key that `attach` has made for a "
                f"target of this name stays: here as {key.path}, and over there as this line of "
                f"~/.ssh/authorized_keys: {key.line}",
                "Remove both by hand if they are this target's, as the key opens the account.",
            )


def _own_key(owner: TargetOwner, target: ComputeTarget, context: Context) -> Key | None:
    """The key that Holdfast put there for this target, unless another target uses it too."""
    path = destination_of(target, context).private_key
    if path is None or not is_ours(path, context.home) or _is_used_by_others(owner, target.name, path, context):
        return None
    return read_key(path, context.environment)


def _is_used_by_others(owner: TargetOwner, name: str, path: Path, context: Context) -> bool:
    for other in compute_names(owner.folders):
        target = examine_compute(owner.folders, other)[0] if other != name else None
        if target is not None and target.address and destination_of(target, context).private_key == path:
            return True
    return False
