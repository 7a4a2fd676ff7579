"""Whether runs will work on a machine: looks at it, proves that a process outlives the login that started it, and finds
the Python that runs will use."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import HostError
from holdfast.hosts.bootstrap import DEFAULT_HOME
from holdfast.hosts.connection import Connection
from holdfast.hosts.facts import Facts, read_facts
from holdfast.hosts.ssh import Ssh
from holdfast.workbench import events
from holdfast.workbench.machines.findings import Finding, findings

USER_UNIT = "user-unit"
PATIENCE = 1.5
"""Seconds that a system gets to end a process after a logout. Where its configuration says that it will, it may take
longer, and is believed."""
Connected = Callable[[Ssh], AbstractContextManager[Connection]]
"""A login of its own, which has ended when the block is left."""


@dataclass(frozen=True)
class Found:
    """`home` is Holdfast's folder there, None for the usual one; `python` what runs will use, None where the login has
    none of its own; `sets_start`: from this look on runs are started in user units, because the system ends others at
    logout."""

    host: Ssh
    home: str | None
    python: str | None
    sets_start: bool
    facts: Facts
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Logout:
    """What the far side says about a logout (`farside.logout.after_logout`)."""

    user: str
    ends: bool
    lingers: bool | None
    unit: bool
    said: str
    start: str


@dataclass(frozen=True)
class _Survey:
    """What one login learned; it left a process running, known by `token`."""

    boot: str
    machine: str
    facts: Facts
    findings: tuple[Finding, ...]
    python: str | None
    logout: _Logout
    token: str


def look(
    host: Ssh, connected: Connected, now: Callable[[], float], may_change: bool = True
) -> Generator[events.Event, None, Found]:
    """Raises HostError or StorageError with what is missing and how to mend it. Without `may_change` the folder and the
    way of starting that the machine has are taken as they are."""
    yield events.Doing(f"looking at {host.name} …")
    survey = None
    with connected(host) as connection:
        place = connection.request("places")
        moves = place["network"] and host.home == DEFAULT_HOME and may_change
        if not (moves and place["local"]):
            survey = yield from _survey(host, connection, now, may_change)
    if moves:
        host = yield from _leave_network_home(host, place)
    if survey is None:
        with connected(host) as connection:
            connection.request("leave", {"home": DEFAULT_HOME})
            survey = yield from _survey(host, connection, now, may_change)
    sets_start = yield from _prove(host, connected, survey, may_change)
    home = host.home if host.home != DEFAULT_HOME else None
    return Found(host, home, survey.python, sets_start, survey.facts, survey.findings)


def _leave_network_home(host: Ssh, place: Any) -> Generator[events.Event, None, Ssh]:
    """Locks, sockets and environments are slow or unsafe on a network file system."""
    where = f"The home on {host.name} is on a network file system ({place['network']})"
    if not place["local"]:
        yield events.Warned(
            f"{where}, and no local disk was found that this account may write to: environments will be slow, and "
            "machines that share that home share Holdfast's folder too.",
            "To name a folder on a local disk: holdfast computetarget attach … --home DIR",
        )
        return host
    yield events.Done(f"{where}: Holdfast's folder there is {place['local']}, on a local disk.")
    return replace(host, home=place["local"])


def _survey(
    host: Ssh, connection: Connection, now: Callable[[], float], may_change: bool
) -> Generator[events.Event, None, _Survey]:
    if may_change:
        settled = connection.request("settle")
        if settled["tightened"]:
            yield events.Done(
                f"{settled['home']} on {host.name} could be entered by others (mode {settled['tightened']}): it is for "
                "your account alone now."
            )
    greeting = connection.request("hello")
    asked_at = now()
    facts = read_facts(connection)
    found = findings(facts, asked_at, platform.machine())
    for finding in found:
        if finding.stops_runs:
            raise HostError(f"{host.name}: {finding.message}", finding.remedy)
    python = connection.request("login-python")["python"] or None
    logout = _Logout(**connection.request("after-logout"))
    token = os.urandom(8).hex()
    connection.request("prove-begin", {"token": token})
    return _Survey(greeting["boot"], greeting["host"], facts, tuple(found), python, logout, token)


def _prove(host: Ssh, connected: Connected, survey: _Survey, may_change: bool) -> Generator[events.Event, None, bool]:
    """Whether it has set that runs are started in user units; HostError when they would not live at all."""
    yield events.Doing(f"proving that runs on {host.name} outlive the connection …")
    logout, lives = survey.logout, _still_lives(host, connected, survey)
    if lives and (not logout.ends or logout.start == USER_UNIT):
        yield events.Done("A process over there outlives the connection.")
        return False
    if not may_change or not logout.lingers or not logout.unit:
        raise _ended_at_logout(host.name, logout)
    yield events.Doing(f"proving that user units on {host.name} outlive the connection …")
    if not _lives_in_unit(host, connected, survey):
        raise _ended_at_logout(host.name, logout)
    yield events.Done(
        f"{host.name} ends processes at logout; `{logout.user}` lingers, so runs are started as units of its own."
    )
    return True


def _lives_in_unit(host: Ssh, connected: Connected, survey: _Survey) -> bool:
    """If so, this is how processes are started there from now on; if not, all is as it was."""
    lives = False
    try:
        with connected(host) as connection:
            connection.request("start-by", {"start": USER_UNIT})
            connection.request("prove-begin", {"token": survey.token})
        lives = _still_lives(host, connected, survey)
    finally:
        if not lives:
            with connected(host) as connection:
                connection.request("start-by", {"start": survey.logout.start})
    return lives


def _still_lives(host: Ssh, connected: Connected, survey: _Survey) -> bool:
    with connected(host) as connection:
        greeting = connection.request("hello")
        if greeting["boot"] != survey.boot:
            raise HostError(
                f"{host.name} is not one machine: it was {survey.machine}, then {greeting['host']}.",
                "Give --address the name of one of them, so that a run can be found again.",
            )
        return bool(connection.request("prove-look", {"token": survey.token, "patience": PATIENCE})["alive"])


def _ended_at_logout(name: str, logout: _Logout) -> HostError:
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
