"""When a script dies on a missing file that is in the project: which ignore rule left it out of the snapshot, and
which lines let it in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.history.run_folder import RunFolders
from holdfast.model import Reason, Run
from holdfast.workbench.following.missing_module import missing_module_sentence, missing_program_sentence

_TAIL = 16384
_MISSING = (
    r"No such file or directory: b?'((?:[^'\\\n]|\\.)+)'",
    r"can't open file '([^'\n]+)'",
    r"(?<![^\s'\":])([^\s'\":]+): No such file or directory",
)
_MODULE = r"No module named '([A-Za-z0-9_.]+)'"


def missing_file_sentence(
    root: Path, folders: RunFolders, run: Run, environment: Mapping[str, str] | None = None
) -> str:
    """Empty when the run did not fail, or missed nothing that something can be said of. `environment` is for git."""
    if run.ending is not None and run.ending.reason is Reason.CANNOT_START:
        return missing_program_sentence(root, folders, run, run.ending.detail)
    if run.ending is None or run.ending.reason is not Reason.EXIT_CODE:
        return ""
    text = _tail(folders.path(run.run_id) / "driver_log")
    for relative in _candidates(text, run.run_id, run.submission.folder):
        if os.path.exists(root / relative):
            found = _rule(root, relative, environment)
            if found:
                return found
    return missing_module_sentence(root, folders, run, text)


def _rule(root: Path, relative: str, environment: Mapping[str, str] | None) -> str:
    from holdfast.snapshots.ignore import explain

    rule = explain(root, relative, environment)
    if rule is None:
        return ""
    where = rule.source if rule.line is None else f"{rule.source}:{rule.line}"
    left_out = f"`{relative}` is in the project, but `{rule.pattern}` ({where}) left it out of the snapshot."
    return f"{left_out} {way_in(root, relative, environment)}"


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


def _candidates(text: str, run_id: str, folder: str) -> list[str]:
    """Paths relative to the project that the output's last words may mean, the last mentioned first. `folder` is where
    the run started."""
    found: list[str] = []
    for pattern in _MISSING:
        for name in re.findall(pattern, text):
            inside = name.partition("/".join(("", run_id, "work", "")))[2] or os.path.join(folder, name)
            normal = os.path.normpath(inside)
            if not os.path.isabs(normal) and not normal.startswith(".."):
                found.append(normal)
    for module in re.findall(_MODULE, text):
        path = module.replace(".", "/")
        found += [f"{path}.py", f"{path}/__init__.py", path, path.split("/")[0]]
    return found[::-1]
