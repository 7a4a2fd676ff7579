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


class Sending(NamedTuple):
    """Bytes of the project's files that are on their way to a host that does not have them."""

    done: int
    total: int


class Fetched(NamedTuple):
    """More of this file of the run is at home; `done` and `total` are bytes of all that are to come."""

    path: str
    done: int
    total: int


class PortOpened(NamedTuple):
    """A port of a host can be used on this machine."""

    port: int
    near_port: int
    host: str


class Ended(NamedTuple):
    run: Run
    missing_file: str = ""
    """Why a file that the script did not find was not there, when an ignore rule left it out."""


class Removed(NamedTuple):
    """`clean` removed something; `kept` says why it did not."""

    name: str
    size: int
    kept: str = ""


class AskingHosts(NamedTuple):
    """These have been asked about their runs for a while; for a line on the screen."""

    targets: tuple[str, ...]


class HostSilent(NamedTuple):
    """A host that cannot be asked about its runs, known here by the compute target `target`: since its first failed
    try. What is shown of its runs is what was last known."""

    target: str
    since: float
    reason: str
    needs_login: bool = False
    remedy: str = ""


class OutputsWait(NamedTuple):
    """The run has ended, and its outputs are too large to be fetched by the way."""

    run_id: str
    target: str
    size: int


class Imported(NamedTuple):
    """A run that was submitted elsewhere is in this project's history now; `lacking` names what its host did not
    know."""

    run_id: str
    lacking: tuple[str, ...] = ()


class Doing(NamedTuple):
    """What takes a while now; the next one takes its place on the screen."""

    text: str


class Done(NamedTuple):
    """A step that came to an end, in a few words."""

    text: str


class KeyShown(NamedTuple):
    """The public half of a key that opens the account once `command` has been run over there."""

    line: str
    command: str


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
    | Sending
    | Fetched
    | PortOpened
    | Ended
    | Removed
    | AskingHosts
    | HostSilent
    | OutputsWait
    | Imported
    | Doing
    | Done
    | KeyShown
)
