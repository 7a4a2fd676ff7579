"""Processes by which an engine without a daemon keeps a run's containers: below the supervisor, and none of the
script's."""

import os
from typing import Set

from holdfast.farside.containers.ending import planned
from holdfast.farside.layout import ENGINE_NAMES

MONITOR = "conmon"


def monitors(folder: str) -> Set[int]:
    """Their pids, for the run in `folder`. To end one is to end its container: that is the engine's own affair."""
    container = planned(folder)
    if container is None:
        return set()
    name = str(container["name"])
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _is_monitor(entry, name)}


def _is_monitor(entry: str, name: str) -> bool:
    """The one of a container says whose it is; its helpers are only below a run that has a container."""
    try:
        with open("/proc/%s/comm" % entry) as source:
            called = source.read().rstrip("\n")
        if called != MONITOR:
            return called in ENGINE_NAMES
        with open("/proc/%s/cmdline" % entry, "rb") as source:
            words = [os.fsdecode(word) for word in source.read().split(b"\0")]
    except (OSError, UnicodeDecodeError):
        return False
    named = words[words.index("-n") + 1] if "-n" in words[:-1] else ""
    return named == name or named.startswith(name + "-")
