"""When a script dies on a missing file: why the run did not have it, and the command that brings it there. When it dies
on a module that the user's own Python does not have: where to name its package."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.history.run_folder import RunFolders
from holdfast.model import Reason, Run
from holdfast.project.folder import CONFIGURATION_FOLDER
from holdfast.workbench.following.missing_input import missing_input_sentence

_TAIL = 16384
_MODULE = r"No module named '([A-Za-z0-9_.]+)'"
_NO_MODULE_AT_LAST = rf"\nModuleNotFoundError: {_MODULE}\s*\Z"


def missing_file_sentence(
    root: Path, folders: RunFolders, run: Run, environment: Mapping[str, str] | None = None
) -> str:
    """Empty when the run did not fail, or missed nothing that something can be said of. `environment` is for git."""
    if run.ending is None or run.ending.reason is not Reason.EXIT_CODE:
        return ""
    text = _tail(folders.path(run.run_id) / "driver_log")
    found = missing_input_sentence(root, folders, run, text, environment)
    if found:
        return found
    missed = re.search(_NO_MODULE_AT_LAST, text)
    is_own_python = run.environment is None and run.image is None
    return _missing_package(root, folders, run, missed[1].split(".")[0]) if missed and is_own_python else ""


def _missing_package(root: Path, folders: RunFolders, run: Run, module: str) -> str:
    """Empty for a module that is somewhere in the project: it is not a matter of packages."""
    target = run.submission.target
    if not module or _has_module(root, module):
        return ""
    file = f"{CONFIGURATION_FOLDER}/{target}.compute"
    setting = "`userManagedEnvironment: false`"
    setting = setting if os.path.exists(root / file) else f"`type: local` and {setting}"
    packages = _packages_file(folders, run.run_id)
    return (
        f"The target `{target}` runs on your own Python, which has no `{module}`. Install it there, or have an "
        f"environment built: name its package in {packages}, and write {setting} into {file}."
    )


def _has_module(root: Path, module: str) -> bool:
    """At the top or in a folder there. Asked of names that a script printed: they may be too long for any file."""
    try:
        folders = [os.fspath(root), *(each.path for each in os.scandir(root) if each.is_dir())]
    except OSError:
        return False
    return any(os.path.exists(os.path.join(folder, f"{module}{end}")) for folder in folders for end in ("", ".py"))


def _packages_file(folders: RunFolders, run_id: str) -> str:
    """As the run was submitted."""
    from holdfast.project.runconfig import CONDA_FILE

    try:
        return str(folders.configuration(run_id)["run_configuration"]["conda_dependencies_file"])
    except (HoldfastError, LookupError, TypeError):
        return CONDA_FILE


def way_in(root: Path, relative: str, environment: Mapping[str, str] | None = None) -> str:
    """What to do so that a path that a rule leaves out ships after all."""
    from holdfast.snapshots.inclusion import lines_to_ship

    match lines_to_ship(root, relative, environment):
        case ():
            return "No rule can let it in: copy it to another place in the project."
        case (line,):
            return f"To ship it, write into .amlignore: {line}"
        case lines:
            return "To ship it, write at the end of .amlignore:\n" + "\n".join(lines)


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as source:
            source.seek(max(0, source.seek(0, os.SEEK_END) - _TAIL))
            return source.read().decode("utf-8", "replace")
    except OSError:
        return ""
