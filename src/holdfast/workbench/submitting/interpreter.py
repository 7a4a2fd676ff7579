"""Which Python a run uses when the user's own is wanted: the active one, where the command is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import HoldfastError, ProjectError
from holdfast.workbench.reach.context import Context

_NAMES = ("python", "python3")


def find_python(location: str | None, root: Path, context: Context) -> str:
    """An absolute path. `location` is `pythonLocation` of the compute target; None, `python` and `python3` mean the
    active one."""
    if location is None or location in _NAMES:
        names = _NAMES if location is None else (location,)
        return _active(names, context)
    path = Path(location).expanduser()
    if len(path.parts) == 1:
        found = _on_path(location, context.environment)
        if found is None:
            raise _not_found(location)
        return _without_shim(found, context, f"`pythonLocation: {location}`")
    full = path if path.is_absolute() else root / path
    if not os.access(full, os.X_OK) or full.is_dir():
        raise _not_found(os.fspath(full))
    if not re.match(r"python3|python$|pypy", full.name):
        _require_python(os.fspath(full), context)
    return os.fspath(full)


def _active(names: tuple[str, ...], context: Context) -> str:
    """An activated virtual or conda environment, then PATH, then the Python that runs Holdfast."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = context.environment.get(variable)
        if prefix:
            candidate = os.path.join(prefix, "bin", "python")
            if os.access(candidate, os.X_OK):
                return candidate
    for name in names:
        found = _on_path(name, context.environment)
        if found is not None:
            return _without_shim(found, context)
    return sys.executable


def _on_path(name: str, environment: Mapping[str, str]) -> str | None:
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    return None


def _without_shim(path: str, context: Context, asked_for: str = "") -> str:
    """pyenv's and asdf's shims are scripts that choose by the current folder, at 100 ms a start: ask once, here."""
    with open(path, "rb") as source:
        if source.read(2) != b"#!":
            return path
    command = [path, "-c", "import sys; print(sys.executable)"]
    try:
        answer = subprocess.run(
            command,
            cwd=context.directory,
            env=dict(context.environment),
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip()
        what = f"`{path}`, which {asked_for} names," if asked_for else f"The active Python `{path}`"
        remedy = "Fix the line in the compute target, or remove it." if asked_for else "Try: python --version"
        raise ProjectError(f"{what} does not start: {said}", remedy) from error
    return answer.stdout.strip() or path


def _require_python(path: str, context: Context) -> None:
    """Asked only of programs whose name does not say it."""
    command = [path, "-c", "import sys; print(sys.version_info[0])"]
    try:
        answer = subprocess.run(
            command, env=dict(context.environment), capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return  # the run itself will say what is wrong with it
    if answer.returncode == 0 and answer.stdout.strip() == "3":
        return
    raise ProjectError(
        f"`{path}` is not a Python 3.", "Fix `pythonLocation` in the compute target, or remove the line."
    )


def _not_found(location: str) -> HoldfastError:
    return ProjectError(
        f"There is no Python at `{location}`.",
        "Fix `pythonLocation` in the compute target, or remove the line to use the active Python.",
    )
