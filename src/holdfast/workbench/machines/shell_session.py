"""A shell, or one command, where a run runs: its folder, its variables, its Python."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import FarSideError, ProjectError, StateError, Unreachable
from holdfast.hosts.client import Client
from holdfast.hosts.host import Host
from holdfast.model import Reason
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.project.configuration import load_configuration
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of

_SSH_FAILED = 255
"""What ssh exits with when ssh itself failed, not the command."""
_NOT_BUILT = "not-built"
"""The far side's word for an environment that is not built."""
_NOT_ONE = ("not-found", "ambiguous")
"""Its words for an id that no environment there has, or that several begin with."""


_ENTERED_ALL_THE_SAME = (Reason.COMPLETED, Reason.CANNOT_START)
"""Without a script that began: what was only prepared, and what one looks into to see why it could not begin."""


def enter_run(project: Project, run: str, words: Sequence[str], context: Context) -> int:
    """Returns the exit code of the shell. Values of secrets are not there: they are not kept."""
    session = session_of(project, run, context)
    found = session.read()
    if found.ending is not None and found.ending.reason is Reason.NOT_STARTED:
        raise StateError(f"The run `{session.run_id}` never started, so there is nothing to enter.", "Submit it again.")
    if found.ending is not None and found.started is None and found.ending.reason not in _ENTERED_ALL_THE_SAME:
        raise StateError(
            f"The run `{session.run_id}` ended before its script began, so there is nothing to enter. "
            f"{found.ending.sentence()}",
            found.remedy(),
        )
    fields = {"project": session.submission.project_id, "run": session.run_id}
    return _enter(session.host, fields, words, context)


def enter_target(
    project: Project, run_configuration: str | None, target: str | None, words: Sequence[str], context: Context
) -> int:
    """As a run with this configuration would find it, in the account's home."""
    configuration = load_configuration(project, run_configuration, target)
    host = host_of(configuration.target, context)
    fields: dict[str, Any] = {
        "python": configuration.target.python_location,
        "variables": dict(configuration.run.environment_variables),
    }
    if configuration.environment is None and configuration.target.type not in CONTAINER_TYPES:
        return _enter(host, fields, words, context)
    from holdfast.workbench.submitting.environment_choice import planned_container, planned_environment

    more = {
        "container": planned_container(project, configuration),
        "plan": planned_environment(project, configuration, host, context),
    }
    fields |= {name: value for name, value in more.items() if value is not None}
    try:
        return _enter(host, fields, words, context)
    except FarSideError as error:
        if error.kind != _NOT_BUILT:
            raise
        named = "".join(
            f" {option} {pasted(name)}" for option, name in (("-c", run_configuration), ("-t", target)) if name
        )
        raise ProjectError(error.message, f"Build it first: holdfast experiment prepare{named}") from error


def enter_environment(host: Host, name: str, words: Sequence[str], context: Context) -> int:
    """`name` is an id or the beginning of one. On this machine one stays in the current folder."""
    fields: dict[str, Any] = {"environment": name, "variables": {}}
    if host.is_here:
        fields["directory"] = str(context.directory)
    try:
        return _enter(host, fields, words, context)
    except FarSideError as error:
        if error.kind not in _NOT_ONE:
            raise
        from holdfast.workbench.environments.inventory import require_environment

        require_environment(host, name)  # in the words of every other command, with the ids that there are
        raise


def _enter(host: Host, fields: Mapping[str, Any], words: Sequence[str], context: Context) -> int:
    """Described over a connection, entered by the terminal; over SSH both share one login where the system can."""
    with host.connect() as connection:
        there = Client(connection).hello().wait()
        token = Client(connection).shell(fields, words)
        entry = [there.executable, "-I", "-S", there.entry, "shell", there.home, token]
        code = subprocess.run(host.in_terminal(entry), env=context.for_children(), check=False).returncode
    if code == _SSH_FAILED and not host.is_here:
        raise Unreachable(f"The connection to {host.name} was lost.", "The run goes on. Open the shell again.")
    return code
