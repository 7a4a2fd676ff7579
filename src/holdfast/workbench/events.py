"""What the workbench tells while it works. The command line renders these; pages will too."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model import Plan, Run


@dataclass(frozen=True)
class Warned:
    """Something that may surprise later, and what to do about it."""

    message: str
    remedy: str = ""


@dataclass(frozen=True)
class SnapshotProgressed:
    files: int
    size: int


@dataclass(frozen=True)
class StillWaiting:
    """Nothing has happened for a second; for clocks on the screen."""


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
    """The host owns the run from here on: this process may go away."""

    run_id: str


@dataclass(frozen=True)
class PhaseChanged:
    name: str
    text: str


@dataclass(frozen=True)
class EnvironmentReady:
    """`built`: in `seconds`, just now; else it was there."""

    id: str
    packages: int
    built: bool
    seconds: float


@dataclass(frozen=True)
class OutputArrived:
    """Bytes of the script's output, exactly once each, in order."""

    data: bytes


@dataclass(frozen=True)
class EndingBegan:
    cause: str
    grace: float


@dataclass(frozen=True)
class Noted:
    text: str


@dataclass(frozen=True)
class ConnectionLost:
    reason: str
    next_try: float


@dataclass(frozen=True)
class Fetched:
    """One more file of the run is at home."""

    path: str
    done: int
    total: int


@dataclass(frozen=True)
class Ended:
    run: Run
    missing_file: str = ""
    """Why a file that the script did not find was not there, when an ignore rule left it out."""


@dataclass(frozen=True)
class Removed:
    """`clean` removed something; `kept` says why it did not."""

    name: str
    size: int
    kept: str = ""


Event = (
    Warned
    | SnapshotProgressed
    | StillWaiting
    | SnapshotTaken
    | Planned
    | RunCreated
    | RunStarted
    | PhaseChanged
    | EnvironmentReady
    | OutputArrived
    | EndingBegan
    | Noted
    | ConnectionLost
    | Fetched
    | Ended
    | Removed
)
