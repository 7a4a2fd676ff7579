"""File systems: which one a path is on, what it is, how much room it has, and what this user may still write."""

import os
import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from holdfast.farside.system.real_paths import real_path

NETWORK = frozenset(
    ("nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "mmfs", "beegfs", "glusterfs")
    + ("panfs", "pvfs2", "orangefs", "wekafs", "quobyte", "ocfs2", "gfs2", "9p", "davfs")
)
_NETWORK_FUSE = re.compile(
    r"fuse\.(sshfs|glusterfs|ceph|s3fs|goofys|gcsfuse|rclone|juicefs|mfs|moosefs|davfs|blobfuse2?|cvmfs2?)"
)
_ESCAPE = re.compile(r"\\([0-7]{3})")
_AMOUNT = re.compile(r"\d{1,18}\*?\Z")
_BLOCK = 1024


class Mount(NamedTuple):
    point: str
    kind: str
    source: str
    options: FrozenSet[str]

    @property
    def is_network(self) -> bool:
        return self.kind in NETWORK or _NETWORK_FUSE.match(self.kind) is not None


def read_mounts(environment: Dict[str, str]) -> List[Mount]:
    """What is mounted here. `HOLDFAST_MOUNTS` names another file of that form, in tests."""
    try:
        with open(environment.get("HOLDFAST_MOUNTS") or "/proc/self/mountinfo", "rb") as source:
            return parse(source.read().decode("utf-8", "surrogateescape"))
    except OSError:
        return []


def parse(text: str) -> List[Mount]:
    """The form of /proc/self/mountinfo: `36 35 98:0 /root /point options [fields…] - type source superoptions`."""
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if dash and len(fields) >= 6 and len(rest) >= 2:
            options = fields[5].split(",") + (rest[2].split(",") if len(rest) > 2 else [])
            found.append(Mount(_plain(fields[4]), rest[0], _plain(rest[1]), frozenset(options)))
    return found


def mount_of(path: str, mounts: List[Mount]) -> Optional[Mount]:
    """The file system that `path` is on: the longest mount point above it; of several at one point the last."""
    found = None
    for mount in mounts:
        below = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if below and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def folder_facts(path: str, mounts: List[Mount]) -> Dict[str, Any]:
    """Of the folder, or of the nearest one above it that exists."""
    there = real_path(path)
    while not os.path.isdir(there) and there != "/":
        there = os.path.dirname(there)
    mount = mount_of(there, mounts)
    facts: Dict[str, Any] = {
        "path": path,
        "file_system": mount.kind if mount else None,
        "mount_point": mount.point if mount else None,
        "source": mount.source if mount else None,
        "network": mount.is_network if mount else None,
        "noexec": "noexec" in mount.options if mount else None,
        "writable": os.access(there, os.W_OK),
    }
    facts.update(dict.fromkeys(("total", "free", "inodes_total", "inodes_free")))
    try:
        status = os.statvfs(there)
    except OSError:
        return facts
    facts.update(total=status.f_blocks * status.f_frsize, free=status.f_bavail * status.f_frsize)
    if status.f_files:  # a file system that makes inodes as it needs them says 0
        facts.update(inodes_total=status.f_files, inodes_free=status.f_favail)
    return facts


def parse_quota(text: str, source: Optional[str], point: Optional[str]) -> Optional[Dict[str, Any]]:
    """This user's limits on the file system, out of what `quota -w -p` printed; None where there are none. Bytes; a
    limit of None is no limit."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 7 or words[0] not in (source, point) or not all(map(_AMOUNT.match, words[1:])):
            continue
        numbers = [int(each.rstrip("*")) for each in words[1:]]
        if len(numbers) < 7:  # without the time of grace: blocks, soft, hard, files, soft, hard
            numbers.insert(3, 0)
        used, soft, hard, _, files, files_soft, files_hard = numbers[:7]
        return {
            "used": used * _BLOCK,
            "limit": (hard or soft) * _BLOCK or None,
            "files": files,
            "files_limit": files_hard or files_soft or None,
        }
    return None


def _plain(text: str) -> str:
    """Blanks and backslashes are written as octal numbers there."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)
