"""The journal of a run: append-only lines that say what happened, and how it ended."""

import errno
import json
import os
import time
from typing import Any, Dict, List, Optional

Event = Dict[str, Any]


class JournalWriter:
    """One writer at a time: the supervisor, after its death the guardian, after both the agent that holds the locks."""

    def __init__(self, path: str, reserve: Optional[str] = None) -> None:
        self.path, self._reserve = path, reserve

    def append(self, event: str, **keys: Any) -> None:
        """On a full disk the reserve, a file kept for this, is given up first."""
        try:
            self._append(event, keys)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self.give_up_reserve():
                raise
            self._append(event, keys)

    def give_up_reserve(self) -> bool:
        try:
            os.unlink(self._reserve or "")
        except OSError:
            return False
        return True

    def shrink_reserve(self, size: int) -> None:
        """Give up all of the reserve but `size` bytes, for output that has no room."""
        try:
            os.truncate(self._reserve or "", size)
        except OSError:
            pass  # it was given up already

    def _append(self, event: str, keys: Dict[str, Any]) -> None:
        record = {"t": round(time.time(), 4), "e": event}
        record.update(keys)
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if _is_torn(descriptor):
                line = b"\n" + line
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, "the disk is full", self.path)
        finally:
            os.close(descriptor)

    def events(self) -> List[Event]:
        return read_events(self.path)

    def ended(self) -> Optional[Event]:
        for event in reversed(self.events()):
            if event["e"] == "ended":
                return event
        return None


def read_events(path: str) -> List[Event]:
    """Whole lines that parse; anything else is passed over, as every reader does."""
    try:
        with open(path, "rb") as source:
            lines = source.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            event = json.loads(line.decode("utf-8"))
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("e"), str):
            found.append(event)
    return found


def _is_torn(descriptor: int) -> bool:
    """A death in the middle of a write, or power loss, leaves a line without its end."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
