"""Projects of the account that runs a test, which Holdfast's folder on this machine knows."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.project import provenance
from holdfast.project.folder import Project, find_project


def home() -> Path:
    """Holdfast's folder on this machine, as a command finds it."""
    return Path(os.environ["HOLDFAST_HOME"])


def project_at(folder: Path) -> Project:
    """The project that a command in this folder is about."""
    return find_project(folder, home())


def own_state(root: Path) -> Path:
    """Make the project's `.holdfast/`, as the first command that needs it does."""
    state = root / provenance.STATE_FOLDER
    provenance.make(state, home())
    return state
