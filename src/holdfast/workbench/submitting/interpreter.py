"""Which Python a run uses when the user's own is wanted: the active one, where the command is typed.

A command that only looks starts none of them: what a project names, or chooses by its files, runs when the project
does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from holdfast.errors import HoldfastError, ProjectError
from holdfast.installed_programs import find_program
from holdfast.regular_files import open_regular, read_regular
from holdfast.workbench.reach.context import Context

_NAMES = ("python", "python3")


def find_python(location: str | None, root: Path, context: Context) -> str:
    """An absolute path. `location` is `pythonLocation` of the compute target; None, `python` and `python3` mean the
    active one."""
    if location is None or location in _NAMES:
        names = _NAMES if location is None else (location,)
        return _active(names, context)
    path = Path(os.path.expanduser(location))  # Path.expanduser raises where there is no such account
    if len(path.parts) == 1:
        found = find_program(location, context.environment)
        if found is None:
            raise _not_found(location)
        return _without_shim(found, context, f"`pythonLocation: {location}`")
    full = path if path.is_absolute() else root / path
    if not os.access(full, os.X_OK) or os.path.isdir(full):
        raise _not_found(os.fspath(full))
    if not context.only_looks and not re.match(r"python3|python$|pypy", full.name):
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
        found = find_program(name, context.environment)
        if found is not None:
            return _without_shim(found, context)
    return sys.executable


def _without_shim(path: str, context: Context, asked_for: str = "") -> str:
    """pyenv's and asdf's shims are scripts that choose by the current folder, at 100 ms a start: ask once, here."""
    try:
        with os.fdopen(open_regular(path), "rb") as source:
            is_script = source.read(2) == b"#!"
    except OSError:
        is_script = False
    if not is_script:
        return path
    if context.only_looks:
        return _chosen_by_pyenv(Path(path), context) or path
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


_VERSION = re.compile(r"[A-Za-z0-9][\w.+-]*(?:/envs/[A-Za-z0-9][\w.+-]*)?")


def _chosen_by_pyenv(shim: Path, context: Context) -> str | None:
    """What pyenv's shim would start, found in pyenv's own folder; None if that is not known."""
    base = shim.parent.parent
    if shim.parent.name != "shims" or not os.path.isdir(base / "versions"):
        return None
    text = context.environment.get("PYENV_VERSION", "")
    places = [each / ".python-version" for each in (context.directory, *context.directory.parents)]
    for file in () if text else (*places, base / "version"):
        try:
            text = read_regular(file, 4096).decode()
            break
        except (OSError, ValueError):
            continue
    for name in re.split(r"[\s:]+", text):
        fitting = [name, *_newest_first(base / "versions", f"{name}.")] if _VERSION.fullmatch(name) else []
        for version in fitting:
            python = base / "versions" / version / "bin" / "python"
            if os.access(python, os.X_OK):
                return os.fspath(python)
    return None


def _newest_first(folder: Path, prefix: str) -> list[str]:
    names = [each.name for each in folder.iterdir() if re.fullmatch(re.escape(prefix) + r"[\d.]+", each.name)]
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)


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
