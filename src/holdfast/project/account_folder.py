"""The account's own folder of compute targets and run configurations, which every project sees.

It says where code and secrets are sent, and which programs start there. So nothing in it is used that another account
made or may change.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.farside.system.ownership import OTHERS_WRITE, give_back, is_own, is_private, may_be_believed, open_above
from holdfast.project.problems import Problem
from holdfast.shown_text import pasted

NAME = "holdfast"


def account_folder(environment: Mapping[str, str], user_home: Path, system: str = sys.platform) -> Path:
    """Where the platform keeps settings; `system` as in `sys.platform`. It need not be there."""
    if system == "darwin":
        return user_home / "Library" / "Application Support" / NAME
    variable, usual = ("APPDATA", ("AppData", "Roaming")) if system == "win32" else ("XDG_CONFIG_HOME", (".config",))
    named = Path(environment.get(variable) or "")
    return (named if named.is_absolute() else user_home.joinpath(*usual)) / NAME


def distrust(file: Path) -> Problem | None:
    """Why a file in the account's folder is not used: another account made it or may change it, or put another one in
    its place. A file that is not there has no such problem."""
    if not hasattr(os, "geteuid"):
        return None
    try:
        folder = os.stat(file.parent)
        found = None if not os.path.lexists(file) else os.stat(file)
        above = open_above(os.fspath(file))
    except OSError:
        return None  # who reads the file says so
    if not is_own(folder):
        return _problem(file.parent, "belongs to another account", give_back(os.fspath(file.parent)))
    if folder.st_mode & OTHERS_WRITE:
        return _problem(file.parent, "can be changed by others", f"chmod go-w {pasted(os.fspath(file.parent))}")
    if found is not None and not may_be_believed(found):
        return _problem(file, "belongs to another account", give_back(os.fspath(file)))
    is_within_reach = os.path.islink(file) or not is_private(folder)
    if found is not None and is_within_reach and found.st_mode & OTHERS_WRITE and stat.S_ISREG(found.st_mode):
        return _problem(file, "can be changed by others", f"chmod go-w {pasted(os.fspath(file))}")
    if above:
        return _problem(Path(above), "can be changed by others", f"chmod go-w {pasted(above)}")
    return None


def _problem(place: Path, what: str, command: str) -> Problem:
    return Problem(os.fspath(place), 0, "", f"{what}, so Holdfast uses none of it", f"If it is yours: {command}")
