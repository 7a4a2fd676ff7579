"""When a script dies on a missing file that is in the project: which ignore rule left it out of the snapshot, and
which lines let it in."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.model import Reason, Run

_TAIL = 16384
_MISSING = (
    r"No such file or directory: b?'((?:[^'\\\n]|\\.)+)'",
    r"can't open file '([^'\n]+)'",
    r"([^\s'\":]+): No such file or directory",
)
_MODULE = r"No module named '([A-Za-z0-9_.]+)'"


def missing_file_sentence(root: Path, folder: Path, run: Run, environment: Mapping[str, str] | None = None) -> str:
    """Empty when the run did not fail, named no missing file, or no rule left it out. `environment` is for git."""
    if run.ending is None or run.ending.reason is not Reason.EXIT_CODE:
        return ""
    for relative in _candidates(_tail(folder / "driver_log"), run.run_id):
        if os.path.exists(root / relative):
            found = _rule(root, relative, environment)
            if found:
                return found
    return ""


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


def _candidates(text: str, run_id: str) -> list[str]:
    """Paths relative to the project that the output's last words may mean, the last mentioned first."""
    found: list[str] = []
    for pattern in _MISSING:
        for name in re.findall(pattern, text):
            inside = name.partition("/".join(("", run_id, "work", "")))[2] or name
            normal = os.path.normpath(inside)
            if not os.path.isabs(normal) and not normal.startswith(".."):
                found.append(normal)
    for module in re.findall(_MODULE, text):
        path = module.replace(".", "/")
        found += [f"{path}.py", f"{path}/__init__.py", path, path.split("/")[0]]
    return found[::-1]
