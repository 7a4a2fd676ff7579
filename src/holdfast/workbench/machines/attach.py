"""Attaching a machine: get in, look at it, prove that runs will live there, in a container if that is wanted, and only
then write its files. `check` repeats the look at any time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import ConfigurationError, FarSideError, HostError, StorageError, UsageError
from holdfast.frozen import dataclass, field, replace
from holdfast.hosts.bootstrap import DEFAULT_HOME
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host, Local
from holdfast.hosts.machine_report import DockerReport, MachineFacts
from holdfast.hosts.ssh import Destination
from holdfast.hosts.ssh_questions import Secret
from holdfast.project import compute
from holdfast.project.compute import (
    CONTAINER_TYPES,
    ComputeTarget,
    examine_compute,
    home_mistake,
    parse_address,
    read_compute,
    user_mistake,
)
from holdfast.project.container_keys import DEFAULT_IMAGE, image_mistake
from holdfast.project.documents import set_value_in_file
from holdfast.project.folder import BUILTIN, Project
from holdfast.project.problems import Mistake
from holdfast.workbench.machines.answers import Ways
from holdfast.workbench.machines.docker_check import Docked, Wish, examine
from holdfast.workbench.machines.first_login import Door, Entered, Entrance, check_key_file
from holdfast.workbench.machines.machine_findings import MachineFinding, findings
from holdfast.workbench.machines.named_python import check_location, start_there
from holdfast.workbench.machines.target_files import refuse_existing, write_target
from holdfast.workbench.machines.target_owners import TargetOwner
from holdfast.workbench.machines.usability import LookSettings, MachineLook, UsableMachine, check_host, look, look_again
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import PASSWORD_VARIABLE, Context
from holdfast.workbench.reach.targets import host_of


@dataclass(frozen=True)
class AttachRequest:
    """What `attach remote` and `attach remotedocker` were given."""

    name: str
    address: str
    username: str | None = None
    home: str | None = None
    ways: Ways = field(default_factory=Ways)
    type: str = "remote"
    image: str | None = None
    python: str | None = None


class Attached(NamedTuple):
    """The last event of an attach: what was written, and what the machine has. `engine` None: runs need no Docker."""

    files: tuple[str, ...]
    target: ComputeTarget
    facts: MachineFacts
    findings: tuple[MachineFinding, ...]
    engine: DockerReport | None = None


class TargetCheck(NamedTuple):
    """The last event of a check: runs will work there unless a finding stops them. `engine` None: runs need no Docker,
    or it cannot be used; `lacks_image`: no container could be tried yet."""

    target: ComputeTarget
    facts: MachineFacts
    findings: tuple[MachineFinding, ...]
    engine: DockerReport | None = None
    lacks_image: bool = False


def attach_remote(owner: TargetOwner, wanted: AttachRequest, context: Context) -> Iterator[events.Event | Attached]:
    """Neither the user nor the machine is asked anything before what was given makes sense. Nothing is written, here or
    there, unless runs will work."""
    destination = _destination(wanted)
    if wanted.name == BUILTIN:
        raise UsageError("`local` is this machine, and every project has it.", "Give the machine a name of its own.")
    if wanted.image is not None:
        _check_image(wanted.image)
    if wanted.python is not None:
        check_location(wanted.python, wanted.type)
    existing = _same_already(owner, wanted, destination)
    if existing is None:
        refuse_existing(owner, wanted.name)
    else:
        wanted = replace(wanted, home=wanted.home or existing.home)
    wanted = replace(wanted, ways=_ways(wanted.ways, context))
    # A key of ours is named after its owner.
    owner_id = owner.begin(wanted.ways.shows_key or wanted.ways.private_key is None)
    door = Door(destination, wanted.home or DEFAULT_HOME, wanted.name, owner_id)
    try:
        yield from _attach(owner, wanted, door, existing, context)
    except BaseException:
        if not wanted.ways.shows_key:  # the same command again is to find the key that was shown
            owner.undo()
        raise


def attach_docker(owner: TargetOwner, wanted: ComputeTarget, context: Context) -> Iterator[events.Event | Attached]:
    """Containers on this machine, with the image and the Python of `wanted` where it names them. Nothing is written
    unless runs will work."""
    name, image, python = wanted.name, wanted.base_docker_image, wanted.python_location
    if name == BUILTIN:
        raise UsageError("`local` is this machine without containers.", "Give the target a name of its own.")
    if image is not None:
        _check_image(image)
    if python is not None:
        check_location(python, wanted.type)
    existing = _of_type(owner, name, "docker")
    if existing is None:
        refuse_existing(owner, name)
    tried = _in_image(owner, existing or wanted, image, python)
    host = Local(context.home, context.environment)
    yield events.Doing("looking at this machine …")
    with host.connect() as connection:
        facts = Client(connection).facts()
        found = findings(facts, in_container=True)
        _refuse_stopping(found)
        docked = yield from examine(connection, host.name, facts, Wish(tried, attaches=True))
    _refuse_stopping(docked.findings)
    target = _with_gpus(tried, docked)
    files = write_target(owner, target) if existing is None else _renew(owner, existing, target, python)
    yield Attached(tuple(files), target, facts, (*docked.findings, *found), docked.engine)


def check(project: Project, name: str, context: Context) -> Iterator[events.Event | TargetCheck]:
    """Look again at a target that is attached, and write nothing. HostError and others say why it cannot be used."""
    target, problems = read_compute(project.configuration_folders, name)
    if target is None:
        raise ConfigurationError(problems)
    host, in_container = host_of(target, context), target.type in CONTAINER_TYPES
    if host.is_here:
        yield events.Doing("looking at this machine …")
        seen = check_host(host, context, in_container)
    else:
        try:
            seen = yield from look_again(
                host, partial(_connected, host.alone()), LookSettings(context.now, in_container)
            )
        except StorageError as error:  # for a check this is an answer about the machine, as all others
            raise HostError(error.message, error.hint) from error
    if host.is_here and not in_container:
        yield TargetCheck(target, seen.facts, seen.findings)
        return
    with _connected(host) as connection:
        if in_container:
            yield from _check_container(connection, host, target, seen)
        else:
            yield TargetCheck(target, seen.facts, (*_about_python(connection, target), *seen.findings))


def _attach(
    owner: TargetOwner, wanted: AttachRequest, door: Door, existing: ComputeTarget | None, context: Context
) -> Iterator[events.Event | Attached]:
    ways = wanted.ways
    entrance = Entrance(door, ways, context)
    entered = yield from entrance.enter()
    in_container, found, docked = wanted.type in CONTAINER_TYPES, None, None
    try:
        how = LookSettings(context.now, in_container)
        found = yield from look(replace(entered.host, home=door.home), entrance.connected, how)
        target = _target(wanted, entered, found, context)
        if in_container:
            tried = _in_image(owner, existing or target, wanted.image, wanted.python)
            with entrance.connected(found.host) as connection:
                docked = yield from examine(connection, found.host.name, found.facts, Wish(tried, attaches=True))
            _refuse_stopping(docked.findings)
            target = _with_gpus(replace(target, base_docker_image=tried.base_docker_image, shared_volumes=True), docked)
        elif wanted.python is not None:
            with entrance.connected(found.host) as connection:
                yield start_there(connection, found.host.name, wanted.python, context)
        files = write_target(owner, target) if existing is None else _renew(owner, existing, target, wanted.python)
        owner.finish()
    except BaseException:
        entrance.forget(entered, found is not None and found.sets_start)
        raise
    if ways.private_key is None and entered.key is None and entrance.was_asked_for_passphrase:
        yield events.Warned(
            "Your key asks for its passphrase at each new connection.",
            "Let ssh-agent remember it (ssh-add), else history and status say `login needed`.",
        )
    if docked is None:
        yield Attached(tuple(files), target, found.facts, found.findings)
    else:
        yield Attached(tuple(files), target, found.facts, (*docked.findings, *found.findings), docked.engine)


def _refuse_stopping(found: Iterable[MachineFinding]) -> None:
    for finding in found:
        if finding.stops_runs:
            raise HostError(finding.message, finding.remedy)


def _check_container(
    connection: Connection, host: Host, target: ComputeTarget, seen: MachineLook
) -> Iterator[events.Event | TargetCheck]:
    """What keeps this user from Docker is an answer about the machine, beside all others."""
    try:
        docked = yield from examine(connection, host.name, seen.facts, Wish(target))
    except FarSideError as error:
        yield TargetCheck(target, seen.facts, (MachineFinding(error.message, error.hint, True), *seen.findings))
        return
    found = sorted((*docked.findings, *seen.findings), key=lambda each: not each.stops_runs)
    yield TargetCheck(target, seen.facts, tuple(found), docked.engine, docked.trial is None)


def _about_python(connection: Connection, target: ComputeTarget) -> Iterator[MachineFinding]:
    if target.python_location is not None:
        why = Client(connection).has_python(target.python_location).why
        if why:
            yield MachineFinding(
                f"Runs would not start: {why}.", f"Fix `pythonLocation` in {target.file}, or remove the line.", True
            )


@contextlib.contextmanager
def _connected(host: Host) -> Iterator[Connection]:
    connection = host.connect()
    try:
        yield connection
    finally:
        connection.finish()


def _same_already(owner: TargetOwner, wanted: AttachRequest, destination: Destination) -> ComputeTarget | None:
    """The target of this name, if it is this very account: a project that came from another laptop has its file, and
    this one needs a way in of its own."""
    found = _of_type(owner, wanted.name, wanted.type)
    if found is None:
        return None
    same = (found.address, found.port) == (destination.address, destination.port)
    return found if same and destination.username in (None, found.username) else None


def _of_type(owner: TargetOwner, name: str, kind: str) -> ComputeTarget | None:
    """The owner's target that has a file, if it is of that type."""
    if owner.folders.file(name, compute.SUFFIX) is None:
        return None
    found, _ = examine_compute(owner.folders, name)
    return found if found is not None and found.type == kind else None


def _renew(owner: TargetOwner, existing: ComputeTarget, target: ComputeTarget, python: str | None) -> list[str]:
    """Only what is different on this laptop, and what was not said; whatever else was written into the file stays.
    `python`: the one that was asked for."""
    changes: list[tuple[str, str | bool]] = []
    if target.private_key is not None and target.private_key != existing.private_key:
        changes.append(("privateKey", target.private_key))
    if target.base_docker_image is not None and target.base_docker_image != existing.base_docker_image:
        changes.append(("baseDockerImage", target.base_docker_image))
    if python is not None and python != existing.python_location:
        changes.append(("pythonLocation", python))
    if python is not None and not existing.user_managed_environment:
        changes.append(("userManagedEnvironment", True))
    if target.nvidia_docker and existing.nvidia_docker is None:
        changes.append(("nvidiaDocker", True))
    file = owner.folders.file(existing.name, compute.SUFFIX) or ""
    for key, value in changes:
        set_value_in_file(owner.folders.root, file, key, value)
    return [file] if changes else []


def _destination(wanted: AttachRequest) -> Destination:
    address = parse_address(wanted.address)
    if isinstance(address, Mistake):
        raise UsageError(f"--address: {address.message}.", _remedy(address))
    for option, value, mistake_in in (
        ("--username", wanted.username, user_mistake),
        ("--home", wanted.home, home_mistake),
    ):
        mistake = mistake_in(value) if value is not None else None
        if mistake is not None:
            raise UsageError(f"{option}: {mistake.message}.", _remedy(mistake))
    return Destination(address[0], address[1], wanted.username)


def _remedy(mistake: Mistake) -> str:
    return mistake.remedy.replace("Write it as `username:`.", "Give it as --username.")


def _ways(ways: Ways, context: Context) -> Ways:
    """With a password from the environment where none was given, and nothing else either."""
    given = [
        option
        for option, is_given in (
            ("--password", ways.password is not None),
            ("--private-key-file", ways.private_key is not None),
            ("-k", ways.shows_key),
        )
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are two ways to get in.", "Give one of them.")
    if ways.passphrase is not None and ways.private_key is None:
        raise UsageError("A passphrase belongs to a key.", "Name it: --private-key-file F")
    for fingerprint in ways.accepted:
        if not fingerprint.startswith(("SHA256:", "MD5:")):
            raise UsageError(f"`{fingerprint}` is not a fingerprint.", "It looks like SHA256:zrKLy1…")
    if ways.private_key is not None:
        path = context.directory / ways.private_key.expanduser()
        return replace(ways, private_key=check_key_file(path))
    password = context.environment.get(PASSWORD_VARIABLE)
    return replace(ways, password=Secret(password)) if password and not given else ways


def _target(wanted: AttachRequest, entered: Entered, found: UsableMachine, context: Context) -> ComputeTarget:
    destination = entered.host.destination
    key = destination.private_key
    is_bare = wanted.type == "remote"
    return ComputeTarget(
        wanted.name,
        wanted.type,
        destination.address,
        destination.port,
        destination.username,
        _below_home(key, context.user_home) if key is not None else None,
        python_location=wanted.python or (found.python if is_bare else None),
        user_managed_environment=True if wanted.python is not None else None if is_bare else False,
        home=wanted.home or found.home,
    )


def _in_image(owner: TargetOwner, target: ComputeTarget, image: str | None, python: str | None) -> ComputeTarget:
    """With what runs are to be in: what was asked for, else what the file says, else the usual image."""
    return replace(
        target,
        base_docker_image=image or target.base_docker_image or DEFAULT_IMAGE,
        shared_volumes=True,
        file=target.file or f"{owner.shown}{target.name}{compute.SUFFIX}",
        python_location=python or target.python_location,
        user_managed_environment=target.user_managed_environment or python is not None,
    )


def _with_gpus(target: ComputeTarget, docked: Docked) -> ComputeTarget:
    return replace(target, nvidia_docker=True if docked.gives_gpus else None)


def _check_image(written: str) -> None:
    mistake = image_mistake(written)
    if mistake is not None:
        raise UsageError(f"--image: {mistake.message}.", mistake.remedy)


def _below_home(path: Path, user_home: Path) -> str:
    """As a user would write it."""
    try:
        return f"~/{path.relative_to(user_home).as_posix()}"
    except ValueError:
        return str(path)
