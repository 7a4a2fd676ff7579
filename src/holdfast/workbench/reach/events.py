"""What the workbench tells while it works. The command line renders these; pages will too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.frozen import dataclass
from holdfast.history.journal_fold import JournalEvent
from holdfast.model import Run
from holdfast.plan import Plan

if TYPE_CHECKING:  # loaded where a snapshot is taken
    from holdfast.snapshots.large_trees import LargeTree


@dataclass(frozen=True)
class Warned:
    """Something that may surprise later, and what to do about it; `run_id` where it is about one run."""

    message: str
    remedy: str = ""
    run_id: str = ""


@dataclass(frozen=True)
class SnapshotProgressed:
    files: int
    size: int


@dataclass(frozen=True)
class ReadingMuch:
    """The project at `root` has much that was not read before; perhaps another folder is meant."""

    root: str
    tree: LargeTree


@dataclass(frozen=True)
class StillWaiting:
    """Nothing has happened for a second or less; for clocks on the screen."""


@dataclass(frozen=True)
class SnapshotTaken:
    digest: str
    files: int
    size: int
    new_objects: int


@dataclass(frozen=True)
class Planned:
    """The last event of a dry run."""

    plan: Plan


@dataclass(frozen=True)
class RunCreated:
    """The run has an id and a record; nothing was started yet."""

    run_id: str


@dataclass(frozen=True)
class RunStarted:
    """The host owns the run from here on: this process may go away. `queued`: what its engine says of a run that waits
    for it; None for one that does not."""

    run_id: str
    queued: str | None = None


@dataclass(frozen=True)
class Recorded:
    """A line of the run's journal has come home."""

    run_id: str
    event: JournalEvent


@dataclass(frozen=True)
class OutputArrived:
    """Bytes of the script's output, exactly once each, in order."""

    run_id: str
    data: bytes


@dataclass(frozen=True)
class EndAsked:
    """The host knows that the run is to end, and sees to it from here on: this process may go away."""

    run_id: str


@dataclass(frozen=True)
class Noted:
    """A note that is not the journal's; `run_id` where it is about one run."""

    text: str
    run_id: str = ""


@dataclass(frozen=True)
class ConnectionLost:
    run_id: str
    reason: str
    next_try: float


@dataclass(frozen=True)
class Reconnected:
    """The host was heard again after a `ConnectionLost`."""

    run_id: str
    host: str


@dataclass(frozen=True)
class Sending:
    """Bytes of the project's files that are on their way to a host that does not have them."""

    done: int
    total: int


@dataclass(frozen=True)
class Fetched:
    """More of this file of the run is at home; `done` and `total` are bytes of all that are to come."""

    run_id: str
    path: str
    done: int
    total: int


@dataclass(frozen=True)
class PortOpened:
    """A port of a host can be used on this machine."""

    port: int
    near_port: int
    host: str


@dataclass(frozen=True)
class Ended:
    run: Run
    missing_file: str = ""
    """Why a file that the script did not find was not there, when an ignore rule left it out; or where the package of
    a module is to be named."""


@dataclass(frozen=True)
class Removed:
    """`clean` removed something; `kept` says why it did not: `is_only_copy`, because the machine alone has it."""

    name: str
    size: int
    kept: str = ""
    is_only_copy: bool = False


@dataclass(frozen=True)
class AskingHosts:
    """These have been asked about their runs for a while; for a line on the screen."""

    targets: tuple[str, ...]


@dataclass(frozen=True)
class HostSilent:
    """A host that cannot be asked about its runs, known here by the compute target `target`: since its first failed
    try. What is shown of its runs is what was last known."""

    target: str
    since: float
    reason: str
    needs_login: bool = False
    remedy: str = ""


@dataclass(frozen=True)
class RunChanged:
    """The record of the run is newer than it was: look at it again."""

    run_id: str


@dataclass(frozen=True)
class OutputsWait:
    """The run has ended, and its outputs are too large to be fetched by the way."""

    run_id: str
    target: str
    size: int


@dataclass(frozen=True)
class Imported:
    """A run that was submitted elsewhere is in this project's history now."""

    run_id: str


@dataclass(frozen=True)
class Doing:
    """What takes a while now; the next one takes its place on the screen."""

    text: str


@dataclass(frozen=True)
class Done:
    """A step that came to an end, in a few words."""

    text: str


@dataclass(frozen=True)
class KeyShown:
    """The public half of a key that opens the account once `command` has been run there."""

    line: str
    command: str


Event = (
    Warned
    | SnapshotProgressed
    | ReadingMuch
    | StillWaiting
    | SnapshotTaken
    | Planned
    | RunCreated
    | RunStarted
    | Recorded
    | OutputArrived
    | EndAsked
    | Noted
    | ConnectionLost
    | Reconnected
    | Sending
    | Fetched
    | PortOpened
    | Ended
    | Removed
    | AskingHosts
    | HostSilent
    | RunChanged
    | OutputsWait
    | Imported
    | Doing
    | Done
    | KeyShown
)
