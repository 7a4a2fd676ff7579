"""The projects of this account on this machine, wherever they lie: Holdfast's folder has a record of each
(`provenance.py`)."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.project.folder import Project, named_project
from holdfast.project.own_home import require_own_folder
from holdfast.project.provenance import RECORDS, STATE_FOLDER
from holdfast.regular_files import read_json

_LARGEST = 1 << 16


def known_projects(home: Path, account: Path | None = None) -> list[Project]:
    """Those that have an id, each once, by their folders. One that was moved, removed or replaced is left out: a record
    says where it was, and only the folder itself whose it is. Raises HostError where the records may be another
    account's."""
    require_own_folder(home)
    found: dict[Path, Project] = {}
    for root in sorted(_recorded(home / RECORDS)):
        try:
            project = named_project(root, home, account)
            if project.id and os.path.isdir(project.state_directory):
                found.setdefault(project.root, project)
        except (HoldfastError, OSError):
            continue
    return list(found.values())


def _recorded(folder: Path) -> set[Path]:
    found = set[Path]()
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return found
    for name in names:
        try:
            path = read_json(folder / name, _LARGEST, follows_link=False).get("path")
        except (OSError, ValueError, AttributeError):
            continue
        state = Path(path) if isinstance(path, str) and "\0" not in path else Path()
        if state.is_absolute() and state.name == STATE_FOLDER:
            found.add(state.parent)
    return found
