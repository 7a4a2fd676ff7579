"""The account that the far side runs as: its name and its own folder."""

import os
import pwd
import stat
from typing import Any, Dict, List, Optional, Set

from holdfast.farside.machine import mounts
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import names_in
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import SHIPPED, Home
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused


def account_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def account_home() -> str:
    """Where sshd looks, which is the account's own and not what HOME says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


_USUAL = ".holdfast"


def settle(home: Home) -> Dict[str, Any]:
    """Take the folder for Holdfast when a target is attached. Refused where it is another's, or where others may enter
    and it cannot be closed to them. `tightened`: its mode before it was closed to them, else empty."""
    refuse_unmarked_home(home)
    status = os.stat(home.path)
    if status.st_uid != os.getuid():
        raise Refused(
            "not-ours", "`%s` belongs to another account." % home.path, "Name a folder of your own: --home DIR"
        )
    return {"home": home.path, "tightened": _tighten(home, stat.S_IMODE(status.st_mode))}


def refuse_unmarked_home(home: Home, remedy: str = "") -> None:
    """`remedy`: in place of the advice to name another folder, where none can be named."""
    if _is_protected(home.path):
        raise Refused(
            "not-ours",
            "`%s` is, or holds, the account's own folder." % home.path,
            remedy or "Name a folder for Holdfast alone: --home %s" % pasted(os.path.join(home.path, "holdfast")),
        )
    if not is_ours(home):
        others = [name for name in names_in(home.path, is_strict=True) if name not in Home.STATE]
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise Refused(
            "not-ours",
            "`%s` holds what is not Holdfast's: %s." % (home.path, shown),
            remedy
            or "Name a folder that is empty or not there yet: --home %s" % pasted(os.path.join(home.path, "holdfast")),
        )


def is_ours(home: Home) -> bool:
    """Marked, or in the usual place, or empty but for the far side."""
    is_marked = os.path.exists(home.marker()) or _is_usual(home.path)
    return is_marked or not set(names_in(home.path, is_strict=True)) - set(Home.STATE)


def _is_protected(path: str) -> bool:
    """The root, the account's own folder, and what that lies in."""
    for each in {os.path.abspath(path), real_path(path)}:
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
        real = real_path(home.path)
        raise Refused(
            "not-ours",
            "`%s` is a link to `%s`, which others may enter (mode %03o)." % (home.path, real, mode & 0o777),
            "Over there: chmod 700 %s. Then the same command again." % pasted(real),
        )
    descriptor = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IRWXU)
    finally:
        os.close(descriptor)
    return "%03o" % (mode & 0o777)


def _is_usual(path: str) -> bool:
    """`~/.holdfast` itself: as a link it may lead to a folder that another user uses too."""
    real = real_path(path)
    return any(real == os.path.join(own, _USUAL) for own in _own_folders())


def _own_folders() -> Set[str]:
    return {real_path(folder) for folder in (account_home(), os.path.expanduser("~")) if folder}


_ENOUGH = 5 << 30
"""Free bytes that a folder for environments should have."""


def places(home: Home) -> Dict[str, Any]:
    """`network`: the kind of network file system that the folder is on, empty for none; `local`: a better place for it,
    None where there is none."""
    mounted = mounts.read_mounts(inherited_environment())
    mount = mounts.mount_of(real_path(home.path), mounted)
    if mount is None or not mount.is_network:
        return {"network": "", "local": None}
    return {"network": mount.kind, "local": local_place(candidates(account_name()), mounted, _ENOUGH)}


def candidates(user: str, root: str = "/") -> List[str]:
    """As administrators name them; the last is on nearly every system, and survives a restart."""
    named = [os.path.join(root, folder, user, "holdfast") for folder in ("scratch", "local", "data")]
    return named + [os.path.join(root, "var", "tmp", "holdfast-" + user)]


def local_place(paths: List[str], mounted: List[mounts.Mount], enough: int) -> Optional[str]:
    """The first that this account may make, on a local disk with room that runs programs."""
    for path in paths:
        facts = mounts.folder_facts(path, mounted)
        nearest = os.path.dirname(path)
        if not os.path.isdir(nearest):
            nearest = os.path.dirname(nearest)
        is_ours = _is_ours(path) if os.path.lexists(path) else os.access(nearest, os.W_OK)
        has_room = facts["free"] is not None and facts["free"] >= enough
        if is_ours and has_room and facts["writable"] and not facts["network"] and not facts["noexec"]:
            return path
    return None


def _is_ours(path: str) -> bool:
    """No other user may have made it before us: in a folder where all may write, any could."""
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    return is_folder and os.lstat(path).st_uid == os.getuid() and is_ours(Home(path))
