"""Whose the host's one folder is. In one that is not Holdfast's nothing is tightened or removed, and a folder that
holds somebody's things is not taken."""

import os
import stat
from typing import Any, Dict, List, Set

from holdfast.farside.account.account import account_home
from holdfast.farside.layout import SHIPPED, Home
from holdfast.farside.refusal import Refused

USUAL = ".holdfast"


def settle(home: Home) -> Dict[str, Any]:
    """Take the folder for Holdfast when a target is attached. Refused where it is somebody's, or where others may enter
    and it cannot be closed to them. `tightened`: its mode before it was closed to them, else empty."""
    refuse_foreign(home)
    status = os.stat(home.path)
    if status.st_uid != os.getuid():
        raise Refused(
            "not-ours", "`%s` belongs to another account." % home.path, "Name a folder of your own: --home DIR"
        )
    adopt(home)
    return {"home": home.path, "tightened": _tighten(home, stat.S_IMODE(status.st_mode))}


def refuse_foreign(home: Home, remedy: str = "") -> None:
    """`remedy`: in place of the advice to name another folder, where none can be named."""
    if is_protected(home.path):
        raise Refused(
            "not-ours",
            "`%s` is, or holds, the account's own folder." % home.path,
            remedy or "Name a folder for Holdfast alone: --home %s" % os.path.join(home.path, "holdfast"),
        )
    if not is_ours(home):
        others = [name for name in _names(home.path) if name not in Home.STATE]
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise Refused(
            "not-ours",
            "`%s` holds what is not Holdfast's: %s." % (home.path, shown),
            remedy or "Name a folder that is empty or not there yet: --home %s" % os.path.join(home.path, "holdfast"),
        )


def adopt(home: Home) -> None:
    """Mark a folder of an older version, which made none. A repeat changes nothing."""
    if os.path.isdir(home.path) and not os.path.exists(home.marker()) and is_ours(home):
        home.mark(found=True)


def is_ours(home: Home) -> bool:
    """Marked, or in the usual place, or empty but for the far side, or an older version's: that one holds a far side
    other than the one that just came, and nothing that Holdfast does not know."""
    if os.path.exists(home.marker()) or _is_usual(home.path):
        return True
    names = set(_names(home.path))
    if not names - set(Home.STATE):
        return True
    is_strange = any(not Home.knows(name) and not name.startswith(Home.CLIENTS) for name in names)
    return not is_strange and bool(set(_names(home.versions())) - {running_version()})


def is_protected(path: str) -> bool:
    """The root, the account's own folder, and what that lies in."""
    for each in {os.path.abspath(path), os.path.realpath(path)}:
        below = each.rstrip("/") + "/"
        if below == "/" or any((own + "/").startswith(below) for own in _own_folders()):
            return True
    return False


def running_version() -> str:
    """The name of the far side that this process was started from."""
    return os.path.basename(SHIPPED)


def _tighten(home: Home, mode: int) -> str:
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ""
    if os.path.islink(home.path):
        real = os.path.realpath(home.path)
        raise Refused(
            "not-ours",
            "`%s` is a link to `%s`, which others may enter (mode %03o)." % (home.path, real, mode & 0o777),
            "Over there: chmod 700 %s. Then the same command again." % real,
        )
    descriptor = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IRWXU)
    finally:
        os.close(descriptor)
    return "%03o" % (mode & 0o777)


def _is_usual(path: str) -> bool:
    """`~/.holdfast` itself: as a link it may lead to a folder that somebody else uses too."""
    real = os.path.realpath(path)
    return any(real == os.path.join(own, USUAL) for own in _own_folders())


def _own_folders() -> Set[str]:
    return {os.path.realpath(folder) for folder in (account_home(), os.path.expanduser("~")) if folder}


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
