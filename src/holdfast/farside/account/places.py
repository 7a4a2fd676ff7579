"""Where Holdfast's folder may lie on a host whose home is on a network file system: on a disk of the machine's own."""

import os
from typing import Any, Dict, List, Optional

from holdfast.farside.account import ownership
from holdfast.farside.account.account import account_name
from holdfast.farside.layout import Home
from holdfast.farside.machine import mounts
from holdfast.farside.run.children import inherited_environment

ENOUGH = 5 << 30
"""Free bytes that a folder for environments should have."""


def places(home: Home) -> Dict[str, Any]:
    """`network`: the kind of network file system that the folder is on, empty for none; `local`: a better place for it,
    None where there is none."""
    mounted = mounts.read_mounts(inherited_environment())
    mount = mounts.mount_of(os.path.realpath(home.path), mounted)
    if mount is None or not mount.is_network:
        return {"network": "", "local": None}
    return {"network": mount.kind, "local": local_place(candidates(account_name()), mounted, ENOUGH)}


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
    """Nobody else must have made it before us: in a folder where all may write, anybody could."""
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    return is_folder and os.lstat(path).st_uid == os.getuid() and ownership.is_ours(Home(path))
