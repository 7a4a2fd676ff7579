"""Programs of this machine by their names."""

from __future__ import annotations

import os
from collections.abc import Mapping


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """The whole path of the program that PATH finds, or None. Folders of PATH that are not absolute do not count: a
    command is typed in a project, and a file there must not be taken for a program of the machine."""
    endings = environment.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if os.name == "nt" else [""]
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        for ending in endings if os.path.isabs(folder) else ():
            path = os.path.join(folder, name + ending)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None
