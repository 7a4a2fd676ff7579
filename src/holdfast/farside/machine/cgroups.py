"""What a control group leaves of a machine: the part of its cores and its memory that processes here may use."""

import os
from typing import Dict, List, NamedTuple, Optional

_UNLIMITED = 1 << 60


class Limits(NamedTuple):
    cores: Optional[float]
    memory: Optional[int]


def limits(root: str = "/") -> Limits:
    """The narrowest of this process's group and all above it; None is no limit."""
    cores: List[float] = []
    memory: List[int] = []
    for controllers, path in _groups(root).items():
        if controllers == "":
            for folder in _upwards(os.path.join(root, "sys/fs/cgroup"), path):
                cores += _quota(_read(os.path.join(folder, "cpu.max")))
                memory += _bytes(_read(os.path.join(folder, "memory.max")))
        for name in controllers.split(","):
            for folder in (
                _upwards(os.path.join(root, "sys/fs/cgroup", name), path) if name in ("cpu", "memory") else []
            ):
                period = _read(os.path.join(folder, "cpu.cfs_period_us"))
                cores += _quota("%s %s" % (_read(os.path.join(folder, "cpu.cfs_quota_us")), period))
                memory += _bytes(_read(os.path.join(folder, "memory.limit_in_bytes")))
    return Limits(min(cores) if cores else None, min(memory) if memory else None)


def _groups(root: str) -> Dict[str, str]:
    """Controllers (none in version 2) and the path of this process's group."""
    found = {}
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found[controllers] = path
    return found


def _upwards(base: str, path: str) -> List[str]:
    """The group's folder and all above it; inside a container the group's own is mounted as the base."""
    parts = [each for each in path.split("/") if each and each != ".."]
    return [os.path.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]


def _quota(text: str) -> List[float]:
    words = text.split()
    try:
        allowed, period = int(words[0]), int(words[1])
    except (ValueError, IndexError):
        return []  # `max`, or not there
    return [round(allowed / float(period), 2)] if allowed > 0 and period > 0 else []


def _bytes(text: str) -> List[int]:
    try:
        count = int(text)
    except ValueError:
        return []
    return [count] if 0 < count < _UNLIMITED else []


def _read(path: str) -> str:
    try:
        with open(path) as source:
            return source.read().strip()
    except OSError:
        return ""
