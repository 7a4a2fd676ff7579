"""Was a process killed because memory ran out? Only the kernel's own accounting is taken as proof."""

import os
import re
from typing import List, Optional, Tuple

_KILLED = re.compile(r"[Kk]illed process (\d+)\b")
_MOST_RECORDS = 1 << 20


class Witness:
    """Made before the script starts; asked after it was killed."""

    def __init__(self) -> None:
        self._counter = _counter_file()
        self._before = _count(self._counter)
        self._log = _kernel_log()

    def verdict(self, pid: int) -> Tuple[bool, str]:
        """Whether it is proven that the kernel ended `pid` for memory, and a sentence for the record."""
        if self._log is not None and pid in _killed_since(self._log):
            return True, "The kernel's log names the process."
        rose = (_count(self._counter) or 0) - (self._before or 0)
        if self._before is None or rose <= 0:
            return False, ""
        if self._alone():
            return True, "The kernel counted it in the run's control group."
        return (
            False,
            "The kernel ended a process for memory in the same control group meanwhile; which one is not known.",
        )

    def close(self) -> None:
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def _alone(self) -> bool:
        """Nothing but this process and its guardian is left in the control group, so the victim was the run's."""
        try:
            with open(os.path.join(os.path.dirname(self._counter or ""), "cgroup.procs")) as source:
                members = {int(line) for line in source}
        except (OSError, ValueError):
            return False
        return bool(members) and members <= {os.getpid(), os.getppid()}


def _counter_file() -> Optional[str]:
    """`memory.events` (cgroup v2) or `memory.oom_control` (v1) of this process's group."""
    try:
        with open("/proc/self/cgroup") as source:
            lines = source.read().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            candidate = os.path.join("/sys/fs/cgroup" + path.rstrip("/"), "memory.events")
        elif "memory" in controllers.split(","):
            candidate = os.path.join("/sys/fs/cgroup/memory" + path.rstrip("/"), "memory.oom_control")
        else:
            continue
        if _count(candidate) is not None:
            return candidate
    return None


def _count(path: Optional[str]) -> Optional[int]:
    try:
        with open(path or "") as source:
            for line in source:
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
    except (OSError, ValueError):
        pass
    return None


def _kernel_log() -> Optional[int]:
    """The kernel's log from now on, where this user may read it."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
        return descriptor
    except OSError:
        return None


def _killed_since(descriptor: int) -> List[int]:
    found = []
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(descriptor, 8192)
        except BrokenPipeError:
            continue  # older records were overwritten; the next read goes on after the gap
        except OSError:
            break
        if not record:
            break
        match = _KILLED.search(record.decode("utf-8", "replace"))
        if match:
            found.append(int(match.group(1)))
    return found
