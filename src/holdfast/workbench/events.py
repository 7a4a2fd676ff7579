"""What the workbench tells while it works. The command line renders these; pages will too.

Named tuples, as a module of many small values imports seven times faster so than with dataclasses.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.model import Plan, Run


class Warned(NamedTuple):
    """Something that may surprise later, and what to do about it."""

    message: str
    remedy: str = ""


class SnapshotProgressed(NamedTuple):
    files: int
    size: int


class StillWaiting(NamedTuple):
    """Nothing has happened for a second; for clocks on the screen."""


class SnapshotTaken(NamedTuple):
    digest: str
    files: int
    size: int
    new_objects: int


class Planned(NamedTuple):
    """The last event of a dry run."""

    plan: Plan


class RunCreated(NamedTuple):
    """The run has an id and a record; nothing was started yet."""

    run_id: str


class RunStarted(NamedTuple):
    """The host owns the run from here on: this process may go away."""

    run_id: str


class PhaseChanged(NamedTuple):
    name: str
    text: str


class EnvironmentReady(NamedTuple):
    """`built`: in `seconds`, just now; else it was there."""

    id: str
    packages: int
    built: bool
    seconds: float


class OutputArrived(NamedTuple):
    """Bytes of the script's output, exactly once each, in order."""

    data: bytes


class EndingBegan(NamedTuple):
    cause: str
    grace: float


class Noted(NamedTuple):
    text: str


class ConnectionLost(NamedTuple):
    reason: str
    next_try: float


class Fetched(NamedTuple):
    """One more file of the run is at home."""

    path: str
    done: int
    total: int


class Ended(NamedTuple):
    run: Run
    missing_file: str = ""
    """Why a file that the script did not find was not there, when an ignore rule left it out."""


class Removed(NamedTuple):
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
