"""The journal of a run: append-only lines that say what happened, and how it ended."""

import errno
import json
import os
from typing import Any, Dict, List, Optional

from holdfast.farside.system import foreign
from holdfast.farside.system.clock import Clock, clock_of
from holdfast.farside.system.files import is_at, renewed
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.whole_lines import WholeLines, pieces

Event = Dict[str, Any]
_LONGEST_FIRST = 1 << 16
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT


class JournalWriter:
    """One writer at a time: the supervisor, after its death the guardian, after both the agent that holds the locks."""

    def __init__(self, path: str, reserve: Optional[str] = None, keeps: bool = False) -> None:
        """`keeps`: for an owner of the run, which has the journal open. If a cleaner takes the file, it comes back."""
        self.path, self._reserve = path, reserve
        self._clock: Optional[Clock] = None
        self._kept = open_plain(path, _FLAGS) if keeps else -1

    def clock(self) -> Clock:
        """The run's, by which its events are told."""
        if self._clock is None:
            self._clock = clock_of(_first_event(self.path))
        return self._clock

    def begin(self, **keys: Any) -> None:
        """The first event, from which the run's clock goes."""
        self._clock = Clock()
        self.append("created", clock=self._clock.offset, **keys)

    def keep(self) -> bool:
        """Whether the file had been taken. A disk without room is no reason to end: the next line tries again."""
        if self._kept < 0 or is_at(self.path, self._kept):
            return False
        try:
            make_private(os.path.dirname(self.path))
            self._kept = renewed(self._kept, self.path)
        except OSError:
            return False
        return True

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
            descriptor = open_plain(self._reserve or "", os.O_WRONLY)
        except (OSError, Refused):
            return  # it was given up already
        try:
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def _append(self, event: str, keys: Dict[str, Any]) -> None:
        record = {"t": round(self.clock().now(), 4), "e": event}
        record.update(keys)
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        self.keep()
        descriptor = open_plain(self.path, _FLAGS)
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
        """The last end. Only lines that look like one are parsed: this is asked every few seconds."""
        found = [event for event in read_events(self.path, b'"ended"') if event["e"] == "ended"]
        return found[-1] if found else None


def _first_event(path: str) -> Event:
    try:
        with os.fdopen(open_plain(path), "rb") as source:
            return foreign.mapping(foreign.parsed(source.readline(_LONGEST_FIRST)))
    except (OSError, Refused):
        return {}


def read_events(path: str, having: bytes = b"") -> List[Event]:
    """Whole lines that parse, of those that have these bytes; anything else is passed over, as every reader does."""
    found, whole = [], WholeLines()
    try:
        with os.fdopen(open_plain(path), "rb") as source:
            for piece in pieces(source):
                for line in whole.feed(piece):
                    event = foreign.parsed(line) if having in line else None
                    if isinstance(event, dict) and isinstance(event.get("e"), str):
                        found.append(event)
    except FileNotFoundError:
        return []
    return found


def events_there(path: str) -> List[Event]:
    """As `read_events`; none where the file cannot be read, or something else stands in its place."""
    try:
        return read_events(path)
    except OSError:
        return []


def _is_torn(descriptor: int) -> bool:
    """A death in the middle of a write, or power loss, leaves a line without its end."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
