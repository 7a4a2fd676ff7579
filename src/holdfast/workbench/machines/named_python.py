"""The Python that `attach --python` names: before it is written, it has to start."""

from __future__ import annotations

import os
import subprocess

from holdfast.errors import HostError, ProjectError, UsageError
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.shown_text import pasted
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context

_QUESTION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
_PATIENCE = 30.0


def check_location(location: str, kind: str) -> None:
    """Of a machine elsewhere or an image, where the current folder means nothing. Raises UsageError."""
    if not location or not location.isprintable():
        raise UsageError("--python names no file.", "Give its whole path, such as /opt/venv/bin/python.")
    is_whole = location.startswith("/") or (location.startswith("~/") and kind not in CONTAINER_TYPES)
    if "/" in location and not is_whole:
        place = "in the image" if kind in CONTAINER_TYPES else "on the machine"
        raise UsageError(f"`{location}` is not a whole path.", f"Give the whole path {place}: /opt/venv/bin/python")


def start_there(connection: Connection, host: str, location: str, context: Context) -> events.Done:
    """Raises HostError where that Python does not start on the host."""
    found = Client(connection).has_python(location, start=True)
    if found.why:
        hint = "Give the path that it has on that machine."
        if location.startswith(f"{context.user_home}/"):
            below = location[len(str(context.user_home)) + 1 :]
            hint = f"If your shell replaced `~`, quote it: --python '~'/{pasted(below)}"
        raise HostError(f"{host}: {found.why}.", hint)
    return _is_good(location, host, found.version)


def start_here(location: str, context: Context) -> tuple[str, events.Done]:
    """The whole path of a Python of this machine. Raises ProjectError where it does not start."""
    path = location
    if "/" in location:
        path = os.path.join(context.directory, os.path.expanduser(location))  # a link of a venv is not followed
        path = os.path.normpath(path)
    if os.path.isdir(path):
        raise ProjectError(
            f"`{path}` is a folder.", f"Name its Python: --python {pasted(os.path.join(path, 'bin', 'python'))}"
        )
    try:
        answer = subprocess.run(
            [path, "-I", "-c", _QUESTION],
            env=context.for_children(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise _does_not_start(path, error) from error
    version = answer.stdout.strip()
    if not version.startswith("3."):
        raise ProjectError(f"`{path}` is not a Python 3.", "Name another: --python PATH")
    return path, _is_good(path, "this machine", version)


def _does_not_start(path: str, error: Exception) -> ProjectError:
    said = (getattr(error, "stderr", "") or "").strip().rpartition("\n")[2]
    why = said or getattr(error, "strerror", "") or f"no answer in {_PATIENCE:.0f} s"
    return ProjectError(f"`{path}` does not start: {why}", "Name a Python: --python PATH")


def _is_good(python: str, host: str, version: str) -> events.Done:
    return events.Done(f"`{python}` on {host} is Python {version}.")
