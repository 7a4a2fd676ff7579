"""The end of a run's container where the process that stood for it is gone: for the guardian, for whoever looks at the
run later, and for the supervisor."""

import json
import os
import time
from typing import Any, Callable, Dict, Optional

from holdfast.farside import kernel
from holdfast.farside.containers.docker import Docker
from holdfast.farside.containers.inside import EVENTS, IN, LOCK
from holdfast.farside.layout import FIFO, INSIDE
from holdfast.farside.refusal import Refused

LAST_WORDS = 5.0
"""Seconds for the launcher to end everything in the container, once nobody owns the run any more."""
PATIENCE = 30.0

Pause = Callable[[float], None]


def end(folder: str, pause: Pause) -> None:
    """Of the run in `folder`. Nothing runs in its container when this returns, unless Docker does not answer either."""
    inside = os.path.join(folder, INSIDE)
    if os.path.isdir(inside) and not wait_for_launcher(inside, LAST_WORDS, pause):
        remove(folder)
        wait_for_launcher(inside, LAST_WORDS, pause)


def remove(folder: str) -> None:
    """Gone already is success. What Docker does not remove now is found by its label later."""
    container = _container(folder)
    if container is None or not os.path.isdir(os.path.join(folder, INSIDE)):
        return
    try:
        Docker(str(container["program"])).call(["rm", "-f", "-v", str(container["name"])], PATIENCE)
    except Refused:
        pass
    tidy(folder)


def tidy(folder: str) -> None:
    """Take away what only a living container needs: whoever reads a pipe of the run's folder would wait for ever."""
    names = [FIFO] + [os.path.join(INSIDE, name) for name in (IN, EVENTS, "passwd", "group")]
    for name in names:
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass


def is_launcher_alive(inside: str) -> bool:
    """By its lock, which no death leaves behind. It is the container's first process: all others end with it."""
    return kernel.lock_holder(os.path.join(inside, LOCK), 0) is not None


def wait_for_launcher(inside: str, seconds: float, pause: Pause) -> bool:
    """Whether it has ended within that time."""
    deadline = time.monotonic() + seconds
    while is_launcher_alive(inside):
        if time.monotonic() > deadline:
            return False
        pause(0.01)
    return True


def _container(folder: str) -> Optional[Dict[str, Any]]:
    try:
        with open(os.path.join(folder, "plan.json")) as source:
            found: Optional[Dict[str, Any]] = json.load(source).get("container")
    except (OSError, ValueError, AttributeError):
        return None
    return found
