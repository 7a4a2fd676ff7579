"""Names that stand for files in `aml_config/`: listing them, and refusing what could not be one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from holdfast.errors import UsageError

CONFIGURATION_FOLDER = "aml_config"
BUILTIN = "local"
"""Always there: a folder without any file still runs on this machine."""


def names_with(root: Path, suffix: str) -> list[str]:
    """Every name that has a file with `suffix`, and `local`, sorted."""
    return sorted({BUILTIN, *file_stems(root, suffix)})


def file_stems(root: Path, suffix: str) -> list[str]:
    """Listed, not opened: a name must match its file exactly, also where the file system ignores case."""
    try:
        with os.scandir(root / CONFIGURATION_FOLDER) as found:
            return sorted(
                each.name.removesuffix(suffix) for each in found if each.name.endswith(suffix) and each.is_file()
            )
    except OSError:
        return []


def check_name(kind: str, name: str) -> str:
    """`name` when a new file may have it; UsageError else. `kind` is such as `compute target`."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", name, re.ASCII) or name.endswith("."):
        raise UsageError(
            f"`{name}` cannot be the name of a {kind}.",
            "Use letters, digits, `-`, `_` and `.`; begin with a letter or digit; at most 64 characters.",
        )
    return name


def refuse_paths(kind: str, name: str) -> None:
    if not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise UsageError(f"`{name}` is not the name of a {kind}.", "Give the name alone, without a folder.")
