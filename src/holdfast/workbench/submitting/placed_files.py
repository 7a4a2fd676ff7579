"""Files where they lie on this machine, read and sent for a run: its data, and those of an earlier run."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from holdfast.hosts.connection import Connection
from holdfast.project.quantities import format_size
from holdfast.snapshots.folder_contents import FolderContents, PlacedContents, Reading
from holdfast.workbench.reach import events
from holdfast.workbench.submitting.send import Sender


def told(reading: Reading, what: str) -> Generator[events.Event, None, FolderContents]:
    """What was read, as soon as it is; until then how far that is."""
    while True:
        try:
            done, total = next(reading)
        except StopIteration as end:
            contents: FolderContents = end.value
            return contents
        yield events.Doing(f"reading {what}: {format_size(done)} of {format_size(total)}")


def send_contents(connection: Connection, contents: FolderContents) -> Iterator[events.Event]:
    """What the host lacks of them. What a broken link left there is continued."""
    sender = Sender(connection, PlacedContents(contents), contents.digest, None)
    sender.announce(at_once=0)
    yield from sender.complete()
    sender.confirm()
