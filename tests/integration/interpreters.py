"""The Pythons of this machine that the far side and the in-run API support."""

from __future__ import annotations

import os
import re
from pathlib import Path

OLDEST = 6


def interpreters() -> dict[str, Path]:
    """The first of each version, on the path and from pyenv, whose own shell scripts are left out."""
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each]
    folders += sorted((Path.home() / ".pyenv" / "versions").glob("*/bin"))
    found: dict[str, Path] = {}
    for folder in folders:
        for file in sorted(folder.glob("python3.*")):
            version = re.fullmatch(r"python3\.(\d+)", file.name)
            if version and int(version[1]) >= OLDEST and is_program(file):
                found.setdefault(version[0], file)
    return dict(sorted(found.items(), key=lambda each: int(each[0].split(".")[1])))


def is_program(file: Path) -> bool:
    if not (file.is_file() and os.access(file, os.X_OK)):
        return False
    with file.open("rb") as stream:
        return stream.read(2) != b"#!"


FOUND = interpreters()  # at import, while the environment is still the machine's: tests have their own home
