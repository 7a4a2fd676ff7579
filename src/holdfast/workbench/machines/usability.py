"""Whether runs will work on a machine: what there is, a proof that a process outlives the login that started it, the
Python that runs will use, and who uses its GPUs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

from holdfast.errors import FarSideError, HostError
from holdfast.frozen import dataclass, replace
from holdfast.hosts.bootstrap import DEFAULT_HOME
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host, Local
from holdfast.hosts.machine_report import DockerReport, GpuInventory, MachineFacts
from holdfast.hosts.replies import HomePlaces, LogoutRules
from holdfast.hosts.ssh import Ssh
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.machines.docker_check import engine_findings
from holdfast.workbench.machines.machine_findings import MachineFinding, findings
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of

USER_UNIT = "user-unit"
PATIENCE = 1.5
"""Seconds that a system gets to end a process after a logout. Where its configuration says that it will, it may take
longer, and is believed."""
_LogIn = Callable[[], AbstractContextManager[Connection]]
"""A login of its own, which has ended when the block is left."""


@dataclass(frozen=True)
class LookSettings:
    """`now` is the clock here; `in_container`: runs see a system of their own; `may_change`: the folder there may be
    closed to others, and the way of starting be set."""

    now: Callable[[], float]
    in_container: bool = False
    may_change: bool = True


@dataclass(frozen=True)
class UsableMachine:
    """`home` is Holdfast's folder there, None for the usual one; `python` what runs will use, None where the login has
    none of its own; `sets_start`: from this look on runs are started in user units, because the system ends others at
    logout."""

    host: Ssh
    home: str | None
    python: str | None
    sets_start: bool
    facts: MachineFacts
    findings: tuple[MachineFinding, ...]


class MachineCheck(NamedTuple):
    """`engine` None: there is no Docker, or it cannot be used."""

    facts: MachineFacts
    findings: tuple[MachineFinding, ...]
    engine: DockerReport | None


class MachineLook(NamedTuple):
    """What a look finds that changes nothing."""

    facts: MachineFacts
    findings: tuple[MachineFinding, ...]


@dataclass(frozen=True)
class _Survey:
    """What one login learned; it left a process running, known by `token`."""

    boot: str
    machine: str
    facts: MachineFacts
    findings: tuple[MachineFinding, ...]
    python: str | None
    logout: LogoutRules
    token: str


def look(
    host: Ssh, connected: Callable[[Ssh], AbstractContextManager[Connection]], how: LookSettings
) -> Generator[events.Event, None, UsableMachine]:
    """Raises HostError or StorageError with what is missing and the remedy."""
    yield events.Doing(f"looking at {host.name} …")
    survey = None
    with connected(host) as connection:
        place = Client(connection).places()
        moves = place.network and host.home == DEFAULT_HOME
        if not (moves and place.local):
            survey = yield from _survey(host.name, connection, how)
    if moves:
        host = yield from _leave_network_home(host, place)
    if survey is None:
        with connected(host) as connection:
            Client(connection).leave(DEFAULT_HOME)
            survey = yield from _survey(host.name, connection, how)
    sets_start = yield from _prove(host.name, partial(connected, host), survey, True)
    home = host.home if host.home != DEFAULT_HOME else None
    return UsableMachine(host, home, survey.python, sets_start, survey.facts, survey.findings)


def look_again(host: Host, log_in: _LogIn, how: LookSettings) -> Generator[events.Event, None, MachineLook]:
    """As `look`, but the folder and the way of starting that the machine has are taken as they are."""
    yield events.Doing(f"looking at {host.name} …")
    with log_in() as connection:
        survey = yield from _survey(host.name, connection, replace(how, may_change=False))
    yield from _prove(host.name, log_in, survey, False)
    return MachineLook(survey.facts, survey.findings)


def check_this_machine(context: Context) -> MachineCheck:
    """Raises StorageError when Holdfast's folder cannot be written, NotAvailable where this is not Linux."""
    with Local(context.home, context.environment).connect() as connection:
        facts = Client(connection).facts()
        found = findings(facts, context.now())
        engine, about = _docker(connection) if facts.docker.version else (None, [])
    return MachineCheck(facts, (*found, *about), engine)


def check_host(host: Host, context: Context, in_container: bool) -> MachineLook:
    """The same look at any machine, as runs without containers need it unless `in_container`. Raises what `connect` and
    a request raise."""
    with host.connect() as connection:
        facts = Client(connection).facts()
    return MachineLook(facts, tuple(findings(facts, context.now(), in_container=in_container)))


def watch_gpus(target: ComputeTarget, context: Context) -> Generator[GpuInventory, None, None]:
    """Who uses the GPUs of the target's machine, each time the iterator is asked; over one connection, which closes
    with it. Raises what `connect` and a request raise."""
    with host_of(target, context).connect() as connection:
        while True:
            yield Client(connection).gpus()


def _leave_network_home(host: Ssh, place: HomePlaces) -> Generator[events.Event, None, Ssh]:
    """Locks, sockets and environments are slow or unsafe on a network file system."""
    where = f"The home on {host.name} is on a network file system ({place.network})"
    if not place.local:
        yield events.Warned(
            f"{where}, and no local disk was found that this account may write to: environments will be slow, and "
            "machines that share that home share Holdfast's folder too.",
            "To name a folder on a local disk: holdfast computetarget attach … --home DIR",
        )
        return host
    yield events.Done(f"{where}: Holdfast's folder there is {place.local}, on a local disk.")
    return replace(host, home=place.local)


def _survey(name: str, connection: Connection, how: LookSettings) -> Generator[events.Event, None, _Survey]:
    far = Client(connection)
    if how.may_change:
        settled = far.settle()
        if settled.tightened:
            yield events.Done(
                f"{settled.home} on {name} could be entered by others (mode {settled.tightened}): it is for your "
                "account alone now."
            )
    hello = far.hello().wait()
    asked_at = how.now()
    facts = far.facts()
    found = findings(facts, asked_at, platform.machine(), how.in_container)
    for finding in found:
        if finding.stops_runs:
            raise HostError(f"{name}: {finding.message}", finding.remedy)
    python, logout = far.login_python() or None, far.after_logout()
    token = os.urandom(8).hex()
    far.prove_begin(token)
    return _Survey(hello.boot, hello.host, facts, tuple(found), python, logout, token)


def _prove(name: str, log_in: _LogIn, survey: _Survey, may_change: bool) -> Generator[events.Event, None, bool]:
    """Whether it has set that runs are started in user units; HostError when they would not live at all."""
    yield events.Doing(f"proving that runs on {name} outlive the connection …")
    logout, lives = survey.logout, _still_lives(name, log_in, survey)
    if lives and (not logout.ends or logout.start == USER_UNIT):
        yield events.Done("A process over there outlives the connection.")
        return False
    if not may_change or not logout.lingers or not logout.unit:
        raise _ended_at_logout(name, logout)
    yield events.Doing(f"proving that user units on {name} outlive the connection …")
    if not _lives_in_unit(name, log_in, survey):
        raise _ended_at_logout(name, logout)
    yield events.Done(
        f"{name} ends processes at logout; `{logout.user}` lingers, so runs are started as units of its own."
    )
    return True


def _lives_in_unit(name: str, log_in: _LogIn, survey: _Survey) -> bool:
    """If so, this is how processes are started there from now on; if not, all is as it was."""
    lives = False
    try:
        with log_in() as connection:
            Client(connection).start_by(USER_UNIT)
            Client(connection).prove_begin(survey.token)
        lives = _still_lives(name, log_in, survey)
    finally:
        if not lives:
            with log_in() as connection:
                Client(connection).start_by(survey.logout.start)
    return lives


def _still_lives(name: str, log_in: _LogIn, survey: _Survey) -> bool:
    with log_in() as connection:
        far = Client(connection)
        hello = far.hello().wait()
        if hello.boot != survey.boot:
            raise HostError(
                f"{name} is not one machine: it was {survey.machine}, then {hello.host}.",
                "Give --address the name of one of them, so that a run can be found again.",
            )
        return far.prove_look(survey.token, PATIENCE)


def _ended_at_logout(name: str, logout: LogoutRules) -> HostError:
    what = f"{name} ends a user's processes at logout, and with them every run."
    if logout.lingers is None:
        return HostError(
            f"{what} It has no `loginctl` to allow them.",
            "Ask its administrator to let processes live on after a logout.",
        )
    if not logout.lingers:
        return HostError(
            what,
            f"Over there: loginctl enable-linger (its administrator: sudo loginctl enable-linger {logout.user}). Then "
            "the same command again.",
        )
    if not logout.unit:
        return HostError(
            f"{what} `{logout.user}` lingers, but its service manager starts nothing: {logout.said or '?'}.",
            "Over there, try: systemd-run --user --scope true",
        )
    return HostError(
        f"{what} Processes of user units are ended too.", "Ask its administrator (`KillUserProcesses` in logind.conf)."
    )


def _docker(connection: Connection) -> tuple[DockerReport | None, list[MachineFinding]]:
    """Runs without containers need none of it, so nothing of it stops runs."""
    try:
        engine = Client(connection).docker()
    except FarSideError as error:
        return None, [MachineFinding(error.message, f"{error.hint} Only targets with containers need it.".strip())]
    return engine, [each._replace(stops_runs=False) for each in engine_findings(engine)]
