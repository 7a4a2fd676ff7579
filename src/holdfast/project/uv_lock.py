"""`uv.lock`: packages that uv has chosen already, for every platform at once.

The file is uv's own; what it says for an installer comes out of `uv export` (`environments/exporting.py`), which needs
the `pyproject.toml` beside it.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from holdfast.project.documents import MAXIMUM_BYTES
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.problems import Problem, errors_in
from holdfast.project.pyproject import read_indexes

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


def project_of(lock: str) -> str:
    """The `pyproject.toml` that the lock was made from."""
    return posixpath.join(posixpath.dirname(lock), "pyproject.toml")
