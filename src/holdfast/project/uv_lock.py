"""`uv.lock`: packages that uv has chosen already, for every platform at once.

The file is uv's own; what it says for an installer comes out of `uv export` (`environments/uv_export.py`), which needs
the `pyproject.toml` beside it.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from holdfast.project.documents import MAXIMUM_BYTES
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.problems import Problem, errors_in
from holdfast.project.pyproject import open_pyproject, parse_toml, read_indexes
from holdfast.project.requirement_lines import RequiredPackage, normalised, parse_package

MAXIMUM_LOCK = 50 * MAXIMUM_BYTES


def read_uv_lock(root: Path, relative: str) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """A spec whose `lock_file` is the lock; what it says is still to be exported."""
    beside = project_of(relative)
    remedy = "Make it: uv lock"
    if not os.path.isfile(root / relative):
        return None, [Problem(relative, 0, "", "there is no such file", remedy)]
    if os.path.getsize(root / relative) > MAXIMUM_LOCK:
        return None, [Problem(relative, 0, "", "is too large to be a lock", remedy)]
    if not os.path.isfile(root / beside):
        message = f"there is no `{beside}` beside it"
        return None, [Problem(relative, 0, "", message, "A lock is read together with its project: put it there.")]
    lines, python, written = read_indexes(root, beside)
    lines.problems += _other_wishes(root, relative)
    if errors_in(lines.problems):
        return None, lines.problems
    spec = EnvironmentSpec(
        file=relative,
        python=python,
        pip=tuple(lines.pip),
        files=tuple(lines.files),
        lock_file=relative,
        credentials=lines.concealer.taken(),
        python_from=written,
    )
    return spec, lines.problems


def _other_wishes(root: Path, relative: str) -> list[Problem]:
    """An error where the project is none; a warning where it asks for other packages than the lock was made for."""
    file, _ = open_pyproject(root, project_of(relative))
    if file is None:
        return []  # said already
    project = file.table("project")
    if not project:
        remedy = "Write `[project]` with `dependencies`, then: uv lock"
        return [Problem(file.relative, 0, "project", "is missing, so the lock beside it belongs to nothing", remedy)]
    locked = _locked_wishes((root / relative).read_text(encoding="utf-8", errors="replace"))
    if locked is None or "dependencies" in project.get("dynamic", ()):
        return []
    sources = {normalised(each) for each in file.table("tool", "uv", "sources")}
    parsed = [parse_package(each) for each in project.get("dependencies", ()) if isinstance(each, str)]
    wanted = [each for each in parsed if isinstance(each, RequiredPackage)]
    new = {_wish(each.name, "" if each.location else each.specifier, sources) for each in wanted}
    old = {_wish(name, specifier, sources) for name, specifier in locked}
    if len(wanted) < len(parsed) or new == old:
        return []
    names = ", ".join(f"`{name}`" for name in sorted({name for name, _ in new ^ old})[:5])
    message = f"the lock is older than {file.relative}, which asks for something else of {names}; what is locked counts"
    return [Problem(relative, 0, "", message, "Make it anew: uv lock", "warning")]


def _locked_wishes(text: str) -> list[tuple[str, str]] | None:
    """Names and specifiers that the project had when it was locked; None where the lock does not tell. Only that part
    of it is parsed: a lock may be long."""
    blocks = re.split(r"^\[\[package\]\]\s*$", text, flags=re.MULTILINE)
    own = [each for each in blocks if re.search(r'^source = \{ (?:virtual|editable) = "\." \}', each, re.MULTILINE)]
    if len(own) != 1:
        return None
    try:
        metadata = parse_toml(own[0]).get("package", {}).get("metadata", {})
        wishes = [each for each in metadata.get("requires-dist", []) if "extra ==" not in each.get("marker", "")]
        return [(str(each["name"]), str(each.get("specifier", ""))) for each in wishes]
    except (ValueError, LookupError, AttributeError, TypeError):
        return None


def _wish(name: str, specifier: str, sources: set[str]) -> tuple[str, frozenset[str]]:
    """Without the order and the spaces of a specifier; of a package with a source of its own, the name alone."""
    clauses = re.sub(r"[\s()]", "", specifier).split(",") if normalised(name) not in sources else ()
    return normalised(name), frozenset(each for each in clauses if each)


def project_of(lock: str) -> str:
    """The `pyproject.toml` that the lock was made from."""
    return posixpath.join(posixpath.dirname(lock), "pyproject.toml")
