"""Names of files that this system's disk cannot hold: what Windows and macOS refuse, or take for one and the same."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable


def unstorable(paths: Iterable[str], system: str = sys.platform) -> dict[str, str]:
    """Of relative paths with slashes, those that cannot be kept here, and why; `system` as in `sys.platform`.

    Of paths that are one and the same here (`Model.pt`, `model.pt`) the first is kept."""
    if system not in ("win32", "darwin"):
        return {}
    found: dict[str, str] = {}
    kept: dict[str, str] = {}
    for path in paths:
        reason = _refused_by_windows(path) if system == "win32" else ""
        if not reason and re.search(_NOT_UTF8, path):
            reason = "its name is not UTF-8"
        reason = reason or _taken(path, kept, system)
        if reason:
            found[path] = reason
    return found


def _refused_by_windows(path: str) -> str:
    for part in path.split("/"):
        forbidden = re.search(_FORBIDDEN, part)
        if forbidden:
            return f"Windows has no names with {forbidden[0]!a}"
        if part.endswith((" ", ".")):
            return "Windows has no names that end with a dot or a space"
        stem = part.partition(".")[0].rstrip(" ")
        if re.fullmatch(_DEVICE, stem):
            return f"`{stem}` is the name of a device on Windows"
    return ""


def _taken(path: str, kept: dict[str, str], system: str) -> str:
    """Whether this path, or a folder above it, is another spelling of one that is kept: letters of another case, and on
    macOS accents that are composed otherwise, are no difference to the disk."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        spelt = "/".join(parts[:count])
        first = kept.setdefault(_key(spelt, system), spelt)
        if first != spelt:
            return f"`{first}` is the same name here"
    return ""


def _key(path: str, system: str) -> str:
    if system == "darwin" and not path.isascii():
        import unicodedata  # rarely needed

        path = unicodedata.normalize("NFD", path)
    return path.casefold() if system == "darwin" else path.upper()


# Not compiled before they are needed: on Linux they never are.
_DEVICE = r"(?i:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])"
_FORBIDDEN = r'[<>:"\\|?*\x00-\x1f]'
_NOT_UTF8 = "[\ud800-\udfff]"
