"""Attaching a machine over SSH: get in, look at it, prove that runs will live there, and only then write its files.
`check` repeats the look at any time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import ConfigurationError, HostError, StorageError, UsageError
from holdfast.frozen import dataclass, field, replace
from holdfast.hosts.bootstrap import DEFAULT_HOME
from holdfast.hosts.connection import Connection
from holdfast.hosts.facts import Facts
from holdfast.hosts.host import Host
from holdfast.hosts.secret import Secret
from holdfast.hosts.ssh import Destination
from holdfast.project import compute
from holdfast.project.compute import (
    ComputeTarget,
    Mistake,
    examine_compute,
    home_mistake,
    parse_address,
    read_compute,
    user_mistake,
)
from holdfast.project.documents import set_value_in_file
from holdfast.project.folder import IDENTITY_FILE, Project, ensure_identity, share_identity
from holdfast.project.names import BUILTIN, CONFIGURATION_FOLDER, file_stems
from holdfast.workbench import events
from holdfast.workbench.machines.answers import Ways
from holdfast.workbench.machines.check import check_host
from holdfast.workbench.machines.configuring import refuse_existing, write_target
from holdfast.workbench.machines.entering import Door, Entered, Entrance, check_key_file
from holdfast.workbench.machines.findings import Finding
from holdfast.workbench.machines.usability import Found, look, look_again
from holdfast.workbench.replies import text, understood
from holdfast.workbench.surroundings import PASSWORD_VARIABLE, Surroundings
from holdfast.workbench.targets import product_of


@dataclass(frozen=True)
class Remote:
    """What `attach remote` was given."""

    name: str
    address: str
    username: str | None = None
    home: str | None = None
    ways: Ways = field(default_factory=Ways)


class Attached(NamedTuple):
    """The last event of an attach: what was written, and what the machine has."""

    files: tuple[str, ...]
    target: ComputeTarget
    facts: Facts
    findings: tuple[Finding, ...]


class Checked(NamedTuple):
    """The last event of a check: runs will work there."""

    target: ComputeTarget
    facts: Facts
    findings: tuple[Finding, ...]


def attach_remote(project: Project, wanted: Remote, around: Surroundings) -> Iterator[events.Event | Attached]:
    """Nothing is asked, of a person or of the machine, before what was given makes sense; nothing is written, here or
    there, unless runs will work."""
    destination = _destination(wanted)
    if wanted.name == BUILTIN:
        raise UsageError("`local` is this machine, and every project has it.", "Give the machine a name of its own.")
    existing = _same_already(project, wanted.name, destination)
    if existing is None:
        refuse_existing(project, wanted.name)
    elif wanted.home is None:
        wanted = replace(wanted, home=existing.home)
    wanted = replace(wanted, ways=_ways(wanted.ways, around))
    is_new = not project.state_directory.exists()
    if wanted.ways.shows_key or wanted.ways.private_key is None:
        project = ensure_identity(project, around.user_home)  # a key of ours is named after it
    try:
        yield from _attach(project, wanted, destination, existing, around)
    except BaseException:
        if is_new and not wanted.ways.shows_key:  # the same command again is to find the key that was shown
            _remove_unused_state(project)
        raise


def check(project: Project, name: str, around: Surroundings) -> Iterator[events.Event | Checked]:
    """Look again at a target that is attached, and write nothing. HostError and others say why it cannot be used."""
    target, problems = read_compute(project.root, name)
    if target is None:
        raise ConfigurationError(problems)
    host = product_of(target, around).host
    if host.is_here:
        yield events.Doing("looking at this machine …")
        seen = check_host(host, around)
        yield Checked(target, seen.facts, tuple(seen.findings))
        return
    try:
        found = yield from look_again(host, partial(_connected, host.alone()), around.now)
    except StorageError as error:  # for a check this is an answer about the machine, as all others
        raise HostError(error.message, error.hint) from error
    with _connected(host) as connection:
        yield Checked(target, found.facts, (*_about_python(connection, target), *found.findings))


def _attach(
    project: Project, wanted: Remote, destination: Destination, existing: ComputeTarget | None, around: Surroundings
) -> Iterator[events.Event | Attached]:
    ways, door = wanted.ways, Door(destination, wanted.home or DEFAULT_HOME, wanted.name, project.id)
    entrance = Entrance(door, ways, around)
    entered = yield from entrance.enter()
    found: Found | None = None
    try:
        found = yield from look(replace(entered.host, home=door.home), entrance.connected, around.now)
        target = _target(wanted, entered, found, around)
        files = write_target(project, target) if existing is None else _renew(project, existing, target)
        share_identity(project)
    except BaseException:
        entrance.forget(entered, found is not None and found.sets_start)
        raise
    if ways.private_key is None and entered.key is None and entrance.was_asked_for_passphrase:
        yield events.Warned(
            "Your key asks for its passphrase at each new connection.",
            "Let ssh-agent remember it (ssh-add), else history and status say `login needed`.",
        )
    yield Attached(tuple(files), target, found.facts, found.findings)


def _remove_unused_state(project: Project) -> None:
    """What `ensure_identity` has made, unless somebody has put something beside it."""
    folder, ours = project.state_directory, (IDENTITY_FILE, ".gitignore")
    with contextlib.suppress(OSError):
        if all(each.name in ours for each in folder.iterdir()):
            for name in ours:
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()


def _about_python(connection: Connection, target: ComputeTarget) -> Iterator[Finding]:
    if target.python_location is not None:
        why = _why(connection.request("has-python", {"python": target.python_location}))
        if why:
            yield Finding(
                f"Runs would not start: {why}.", f"Mend `pythonLocation` in {target.file}, or remove the line.", True
            )


def _why(answer: Any) -> str:
    """Why that Python cannot be used; empty where it can."""
    with understood("has-python"):
        return text(answer["why"])


@contextlib.contextmanager
def _connected(host: Host) -> Iterator[Connection]:
    connection = host.connect()
    try:
        yield connection
    finally:
        connection.finish()


def _same_already(project: Project, name: str, destination: Destination) -> ComputeTarget | None:
    """The target of this name, if it is this very account: a project that came from another laptop has its file, and
    this one needs a way in of its own."""
    if name not in file_stems(project.root, compute.SUFFIX):
        return None
    found, _ = examine_compute(project.root, name)
    if found is None or found.type != "remote":
        return None
    same = (found.address, found.port) == (destination.address, destination.port)
    return found if same and destination.username in (None, found.username) else None


def _renew(project: Project, existing: ComputeTarget, target: ComputeTarget) -> list[str]:
    """Only what is different on this laptop; whatever else was written into the file stays."""
    file = f"{CONFIGURATION_FOLDER}/{existing.name}{compute.SUFFIX}"
    if target.private_key is None or target.private_key == existing.private_key:
        return []
    set_value_in_file(project.root, file, "privateKey", target.private_key)
    return [file]


def _destination(wanted: Remote) -> Destination:
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


def _ways(ways: Ways, around: Surroundings) -> Ways:
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
        path = around.directory / ways.private_key.expanduser()
        return replace(ways, private_key=check_key_file(path))
    password = around.environment.get(PASSWORD_VARIABLE)
    return replace(ways, password=Secret(password)) if password and not given else ways


def _target(wanted: Remote, entered: Entered, found: Found, around: Surroundings) -> ComputeTarget:
    destination = entered.host.destination
    key = destination.private_key
    return ComputeTarget(
        wanted.name,
        "remote",
        destination.address,
        destination.port,
        destination.username,
        _below_home(key, around.user_home) if key is not None else None,
        python_location=found.python,
        user_managed_environment=True,
        home=wanted.home or found.home,
    )


def _below_home(path: Path, user_home: Path) -> str:
    """As a person would write it."""
    try:
        return f"~/{path.relative_to(user_home).as_posix()}"
    except ValueError:
        return str(path)
