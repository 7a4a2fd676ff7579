"""Locks whose file is gone. Cleaners of /tmp and /scratch take files of living processes; such a lock is held as
before, but no one who opens its path can see it. The kernel lists all locks, and /proc each process's open files."""

import os
from typing import Callable, Dict, Iterable, List, Optional, Set, Tuple

from holdfast.farside.system import kernel

_GONE = " (deleted)"
_SILLY = ".nfs"
"""How the names begin that NFS gives to files which are deleted while they are open."""

_LOOKS = 3
"""The kernel lists locks a page at a time. If others come and go meanwhile, one that is held may be left out: beside
three busy processes from 3% of the lists."""

OpenFile = Tuple[int, str]
"""Descriptor, and path as the kernel names it."""
Locks = Dict[int, Set[int]]
"""Bytes that a process has locked, with the inodes of the files; without any where the kernel does not list them."""


class LostLocks:
    """Those of other processes, as they are when first asked for. Processes of other pid namespaces, and of other
    users, cannot be seen."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._known: Optional[Dict[int, List[OpenFile]]] = None
        self._locks: Dict[int, Locks] = {}

    def holder(self, path: str, byte: int) -> Optional[int]:
        """The pid of a process that holds the byte of a file that was at `path` and is not there any more."""
        path = os.path.realpath(path)
        beside = os.path.join(os.path.dirname(path), _SILLY)
        return next(iter(self._holding((byte,), lambda link: link == path + _GONE or link.startswith(beside))), None)

    def holders_below(self, folder: str, end: str, byte: int) -> Set[int]:
        """Of lost files whose paths end so, anywhere below the folder."""
        folder, end = os.path.realpath(folder) + "/", end + _GONE
        return self._holding(
            (byte,), lambda link: link.startswith(folder) and (link.endswith(end) or "/" + _SILLY in link)
        )

    def users(self, folder: str, bytes_: Iterable[int]) -> Set[int]:
        """Of any file in the folder, whatever its name is by now. A link is followed to where the files are."""
        place = os.path.realpath(folder)
        return self._holding(tuple(bytes_), lambda link: os.path.dirname(link) == place)

    def _holding(self, bytes_: Iterable[int], is_meant: Callable[[str], bool]) -> Set[int]:
        found = set()
        for pid, files in self._files().items():
            meant = [descriptor for descriptor, link in files if is_meant(link)]
            if meant and any(_holds(pid, self._locks[pid], byte, meant, files, self._root) for byte in bytes_):
                found.add(pid)
        return found

    def _files(self) -> Dict[int, List[OpenFile]]:
        """All that is open, by the processes that hold a lock."""
        if self._known is None:
            self._locks = _holders(self._root)
            self._locks.pop(os.getpid(), None)
            self._known = {pid: open_files(pid, self._root) for pid in self._locks}
        return self._known


def holder(path: str, byte: int, lost: Optional[LostLocks] = None) -> Optional[int]:
    """As `kernel.lock_holder`, also for a lock whose file is gone. Asks the file again at the end: the holder may have
    made it anew meanwhile."""
    found = kernel.lock_holder(path, byte)
    if found is None:
        found = (lost or LostLocks()).holder(path, byte)
    return found if found is not None else kernel.lock_holder(path, byte)


def is_held_by(pid: int, name: str, byte: int, root: str = "/proc") -> bool:
    """Whether the process holds that byte of a file called `name`, which may be gone."""
    ends = ("/" + name, "/" + name + _GONE)
    files = open_files(pid, root)
    meant = [descriptor for descriptor, link in files if link.endswith(ends) or "/" + _SILLY in link]
    return bool(meant) and _holds(pid, _holders(root).get(pid, {}), byte, meant, files, root)


def open_files(pid: int, root: str = "/proc") -> List[OpenFile]:
    """None for a process that is gone, or of another user."""
    folder, found = "%s/%d/fd" % (root, pid), []
    try:
        for name in os.listdir(folder):
            try:
                found.append((int(name), os.readlink(os.path.join(folder, name))))
            except OSError:
                continue
    except OSError:
        pass
    return found


def _holds(pid: int, locks: Locks, byte: int, meant: List[int], files: List[OpenFile], root: str) -> bool:
    """Whether the byte is locked in one of the open files that are `meant`. Where inodes do not prove it, as on some
    file systems, it counts unless other files that the process has open explain all locks of that byte."""
    if byte not in locks:
        return False
    locked = locks[byte]
    if not locked or locked & {_inode(pid, each, root) for each in meant}:
        return True
    others = {_inode(pid, descriptor, root) for descriptor, _ in files if descriptor not in meant}
    return not locked <= others


def _inode(pid: int, descriptor: int, root: str) -> int:
    try:
        return os.stat("%s/%d/fd/%d" % (root, pid, descriptor)).st_ino
    except OSError:
        return 0


def _holders(root: str) -> Dict[int, Locks]:
    """Processes by the single bytes that they hold of any file. Where the kernel has no list, every process may hold
    any: what is open says more then."""
    try:
        lines = [line for _ in range(_LOOKS) for line in _listed(root)]
    except OSError:
        return {int(name): {0: set(), 1: set(), 2: set()} for name in os.listdir(root) if name.isdigit()}
    found: Dict[int, Locks] = {}
    for line in lines:
        words = line.split()
        if len(words) == 8 and words[1] == "POSIX" and words[4].isdigit() and words[6] == words[7]:
            inode = words[5].rpartition(":")[2]
            inodes = found.setdefault(int(words[4]), {}).setdefault(int(words[6]), set())
            inodes.add(int(inode) if inode.isdigit() else 0)
    return found


def _listed(root: str) -> List[str]:
    with open(os.path.join(root, "locks")) as source:
        return source.read().splitlines()
