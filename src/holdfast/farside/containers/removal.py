"""The end of a run's container where the process that stood for it is gone: for the guardian, for listings of the
run later, and for the supervisor; and the processes by which an engine without a daemon keeps containers."""

import os
import time
from typing import Any, Callable, Dict, List, Optional, Set

from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import is_gone
from holdfast.farside.containers.docker_options import HOME_LABEL, PROJECT_LABEL, RUN_LABEL
from holdfast.farside.containers.launcher import EVENTS, IN
from holdfast.farside.containers.launcher_words import read_last_words
from holdfast.farside.system.files import read_record, unlink
from holdfast.farside.system.launcher_lock import is_untouched, launcher_of
from holdfast.farside.system.layout import CONTAINER, ENGINE_NAMES, FIFO, INSIDE
from holdfast.farside.system.processes import pids
from holdfast.farside.system.refusal import Refused

LAST_WORDS = 5.0
"""Seconds for the launcher to end everything in the container, once no process owns the run any more."""
PATIENCE = 30.0
_REMOVE_PATIENCE = 60.0
"""Seconds for one call that removes the container of a run that has ended, which may take its time."""
SETTLING = 3.0
"""Seconds in which a container may still appear that Docker was told to make by a process that is gone."""
ROOM_FIFO = "room.fifo"
"""What the container lives by in which an environment is built."""
_BETWEEN = 0.25

Pause = Callable[[float], None]


def end(folder: str, pause: Pause) -> None:
    """Of the run in `folder`. Nothing runs in its containers when this returns, unless Docker does not answer
    either."""
    inside = os.path.join(folder, INSIDE)
    has_room = os.path.lexists(os.path.join(folder, ROOM_FIFO))
    if not wait_for_launcher(inside, LAST_WORDS, pause) or has_room:
        wait_for_launcher(inside, LAST_WORDS, pause, is_removed=remove(folder))


def remove(folder: str, patience: float = PATIENCE, settling: float = 0.0) -> bool:
    """All containers of the run in `folder`, by their labels: one that has its name may be another's. None is
    success. What Docker does not remove within `patience` seconds is found later. Where the run's own was never up, one
    may be in the making: for `settling` seconds it is waited for. Returns whether none is left, as Docker says."""
    container = planned(folder)
    if container is None:
        return True
    tidy(folder)
    deadline = time.monotonic() + (0.0 if os.path.exists(os.path.join(folder, CONTAINER)) else settling)
    try:
        docker = DockerClient(str(container["program"]))
        while True:
            is_none_left = _is_gone(docker, _labels(folder, container), patience)
            if is_none_left is None or time.monotonic() >= deadline:
                return bool(is_none_left)
            time.sleep(_BETWEEN)
    except Refused:
        return False


def remove_named(docker: DockerClient, name: str, patience: float) -> bool:
    """Whether it is gone, removed by this or before. Tried again for `patience` seconds, whatever Docker says: while
    it stops or starts it refuses in many ways."""
    deadline = time.monotonic() + patience
    while True:
        try:
            answer = docker.call(["rm", "-f", "-v", name], _REMOVE_PATIENCE)
        except Refused:
            return False
        if answer.is_good or is_gone(answer):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_BETWEEN)


def remove_late(folder: str) -> None:
    """After a stop, which may have ended the process that told Docker to make one: it may come yet."""
    if not os.path.exists(os.path.join(folder, CONTAINER)):
        remove(folder, settling=SETTLING)


def _labels(folder: str, container: Dict[str, Any]) -> List[str]:
    home = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    named = ["%s=%s" % (label, container["labels"][label]) for label in (RUN_LABEL, PROJECT_LABEL)]
    return ["%s=%s" % (HOME_LABEL, home)] + named


def _is_gone(docker: DockerClient, labels: List[str], patience: float) -> Optional[bool]:
    """Whether nothing with these labels is left. None: Docker does not answer."""
    filters = [word for label in labels for word in ("--filter", "label=" + label)]
    found = docker.call(["ps", "-a", "-q", "--no-trunc"] + filters, patience)
    if not found.is_good or not found.output.split():
        return True if found.is_good else None
    removed = docker.call(["rm", "-f", "-v"] + found.output.split(), patience)
    return None if removed.code is None else removed.is_good


def swept(folder: str) -> List[List[Any]]:
    """Of the run in `folder`: what the launcher ended, as far as it wrote it down."""
    found = read_last_words(os.path.join(folder, INSIDE))
    return [] if found is None else found.swept


def tidy(folder: str) -> None:
    """Take away what only a living container needs: readers of a pipe of the run's folder would wait for ever."""
    names = [FIFO, ROOM_FIFO] + [os.path.join(INSIDE, name) for name in (IN, EVENTS, "passwd", "group")]
    for name in names:
        unlink(os.path.join(folder, name))


def is_launcher_alive(inside: str) -> bool:
    """Where its lock was taken, or something else is in its place, nothing tells: then it counts as alive."""
    return launcher_of(inside) is not None or not is_untouched(inside)


def wait_for_launcher(inside: str, seconds: float, pause: Pause, is_removed: bool = False) -> bool:
    """Whether it has ended within that time. `is_removed`: there is no container any more, so that only a launcher that
    is seen alive is waited for."""
    deadline = time.monotonic() + seconds
    while launcher_of(inside) is not None if is_removed else is_launcher_alive(inside):
        if time.monotonic() > deadline:
            return False
        pause(0.01)
    return True


def planned(folder: str) -> Optional[Dict[str, Any]]:
    """The container of the run's plan; None for a run without."""
    found: Optional[Dict[str, Any]] = (read_record(os.path.join(folder, "plan.json")) or {}).get("container")
    return found


_MONITOR = "conmon"


def monitors(folder: str) -> Set[int]:
    """Their pids, for the run in `folder`. To end one is to end its container: that is the engine's own affair."""
    container = planned(folder)
    if container is None:
        return set()
    name = str(container["name"])
    return {pid for pid in pids() if _is_monitor(pid, name)}


def _is_monitor(pid: int, name: str) -> bool:
    """The one of a container says whose it is; its helpers are only below a run that has a container."""
    try:
        with open("/proc/%d/comm" % pid) as source:
            called = source.read().rstrip("\n")
        if called != _MONITOR:
            return called in ENGINE_NAMES
        with open("/proc/%d/cmdline" % pid, "rb") as source:
            words = [os.fsdecode(word) for word in source.read().split(b"\0")]
    except (OSError, UnicodeDecodeError):
        return False
    named = words[words.index("-n") + 1] if "-n" in words[:-1] else ""
    return named == name or named.startswith(name + "-")
