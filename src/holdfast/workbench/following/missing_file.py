"""When a script dies on a missing file, module or program: why the run did not have it, and the command that brings
it there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.history.run_folder import RunFolders
from holdfast.model import Reason, Run
from holdfast.snapshots.inclusion import lines_to_ship
from holdfast.workbench.following.missing_input import missing_input_sentence
from holdfast.workbench.following.missing_module import (
    missing_module_sentence,
    missing_program_sentence,
    since_missing_module,
)

_TAIL = 16384


def missing_file_sentence(
    root: Path, folders: RunFolders, run: Run, environment: Mapping[str, str] | None = None
) -> str:
    """Empty when the run did not fail, or missed nothing that something can be said of. `environment` is for git."""
    if run.ending is not None and run.ending.reason is Reason.CANNOT_START:
        return missing_program_sentence(root, folders, run, run.ending.detail)
    if run.ending is None or run.ending.reason is not Reason.EXIT_CODE:
        return ""
    text = _tail(folders.path(run.run_id) / "driver_log")
    found = missing_input_sentence(root, folders, run, since_missing_module(text), environment)
    return found or missing_module_sentence(root, folders, run, text)


def way_in(root: Path, relative: str, environment: Mapping[str, str] | None = None) -> str:
    """What to do so that a path that a rule leaves out ships after all."""
    match lines_to_ship(root, relative, environment):
        case ():
            return "That name can never ship: copy it to another place in the project."
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
