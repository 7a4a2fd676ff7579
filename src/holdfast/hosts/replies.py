"""What the far side answers, as values: one class per shape, read by its annotations. Facts of the machine and its GPUs
are in `machine_report.py`. None is always "not known"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from holdfast.codec import Between
from holdfast.frozen import dataclass, field
from holdfast.model import ClockTime, Place

Seconds = ClockTime


@dataclass(frozen=True)
class Hello:
    """Who answers, the time there, and the far side as a program: its Python, its file, Holdfast's folder."""

    machine: str
    folder: str
    host: str
    home: str
    boot: str
    time: Seconds
    executable: str
    entry: str

    @property
    def place(self) -> Place | None:
        """None: the machine cannot tell."""
        return Place(self.machine, self.folder, self.host) if self.machine and self.folder else None


@dataclass(frozen=True)
class MissingContents:
    """Which contents of a snapshot the host lacks, as ranges of its sorted digests, and how much of some has arrived.
    `needs`: it has not got the manifest."""

    lacks: tuple[tuple[int, int], ...]
    parts: Mapping[str, int]
    needs: str


@dataclass(frozen=True)
class Started:
    """`again`: it had been started before. `queued`: what the engine says of a run that waits for it."""

    again: bool
    queued: str | None


@dataclass(frozen=True)
class Followed:
    """`missing`: the runs that are not there, and why. `alive`: something will be heard so often; None: nothing is
    promised. `clocks`: the time now of each other run, by its own clock."""

    missing: Mapping[str, str]
    alive: float | None
    clocks: Mapping[str, Seconds] = field(default_factory=dict)


class FileRow(NamedTuple):
    """A file (`f`) or link (`l`) of a run."""

    path: str
    kind: str
    size: Annotated[int, Between(0, 1 << 63)]
    mtime_ns: int
    target: str
    is_executable: bool


@dataclass(frozen=True)
class FilePage:
    files: tuple[FileRow, ...]
    total: int
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Streaming:
    """So many files are on their way; `alive` as of `Followed`."""

    files: int
    alive: float | None


@dataclass(frozen=True)
class ListedEnvironment:
    """One environment. `size` is all of it, `own` what removing it frees; `used` and `built` are the host's times."""

    id: str
    state: str
    """`ready`, `in use`, `being built`, `unfinished` or `broken`: its Python is gone."""
    summary: str
    python: str
    packages: int
    size: int
    own: int
    used: Seconds
    built: Seconds
    seconds: Seconds


class EnvironmentUser(NamedTuple):
    """A run on that host that ran in it."""

    project_id: str
    run_id: str
    is_alive: bool


@dataclass(frozen=True)
class Shown:
    """All about one. `lock` is None where it was made by hand or is damaged."""

    listed: ListedEnvironment
    path: str
    packages: tuple[str, ...]
    lock: Mapping[str, Any] | None
    users: tuple[EnvironmentUser, ...]


class Framework(NamedTuple):
    """`cuda` None: it is not known, or there is none (`is_cpu`)."""

    name: str
    version: str
    cuda: str | None
    is_cpu: bool | None


class Mismatch(NamedTuple):
    """What is installed does not fit the machine, or its parts do not fit together."""

    kind: str
    package: str
    sentence: str
    remedy: str
    severity: str


@dataclass(frozen=True)
class Installed:
    """What was found at the place that a run would use. `environment` is empty for the user's own Python; `is_there`
    False: the environment is not built."""

    is_there: bool
    gpus: tuple[str, ...]
    driver: str | None
    problem: str
    wants_gpu: bool
    environment: str = ""
    path: str = ""
    python: str = ""
    packages: int = 0
    frameworks: tuple[Framework, ...] = ()
    findings: tuple[Mismatch, ...] = ()


@dataclass(frozen=True)
class ResolutionTarget:
    """What packages have to be for. `python` None: there is none that fits, `found` names those there are. `lock`: the
    one that the host would take, `built`: it has such an environment. `without_gpu`: it surely has no GPU."""

    platform: str
    python: tuple[str, str] | None
    found: str
    driver: str | None
    lock: Mapping[str, Any] | None
    built: bool
    without_gpu: bool = False


@dataclass(frozen=True)
class Trimmed:
    """Names with their sizes, names with why they stay, and the bytes that are left, where a limit was given."""

    removed: tuple[tuple[str, int], ...]
    kept: tuple[tuple[str, str], ...]
    left: int | None


@dataclass(frozen=True)
class Swept:
    """Kinds with how many and their size; names with why they stay."""

    removed: tuple[tuple[str, int, int], ...]
    kept: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Platform:
    """What a program has to be built for."""

    architecture: str
    libc: str


@dataclass(frozen=True)
class FoundPython:
    """`why` it cannot be used; empty where it can."""

    why: str
    version: str


class FarProject(NamedTuple):
    """A project that has runs on a host; `name` is empty where none of them says it."""

    id: str
    name: str
    runs: int

    def __str__(self) -> str:
        return f"{self.name or 'without a name'} (id {self.id}, {self.runs} {'run' if self.runs == 1 else 'runs'})"


class KnownRun(NamedTuple):
    project_id: str
    run_id: str
    generation: str


@dataclass(frozen=True)
class RunPage:
    runs: tuple[KnownRun, ...]
    more: bool


@dataclass(frozen=True)
class RunRecord:
    """What the host has written down of a run, as it lies there; None: it has not."""

    plan: Mapping[str, Any]
    submission: Mapping[str, Any] | None
    configuration: Mapping[str, Any] | None


@dataclass(frozen=True)
class Contents:
    """The whole size of each content in the answer's body; None for one that is not there."""

    sizes: tuple[int | None, ...]


@dataclass(frozen=True)
class Stack:
    """One process of a run, by its number on the machine. `stack` as Python writes it, most recent call first; empty:
    `why` says what is in the way. Both: why it may not be all its own. `state` is Linux's letter."""

    pid: int
    name: str
    command: str
    state: str
    stack: str
    why: str


@dataclass(frozen=True)
class HomePlaces:
    """The kind of network file system that the folder there is on, empty for none; and a better place for it."""

    network: str
    local: str | None


@dataclass(frozen=True)
class Settled:
    """The folder there, and its mode before it was closed to others, empty where it was not open to them."""

    home: str
    tightened: str


@dataclass(frozen=True)
class Authorized:
    """The file with the key. `made`: whether it had to be made (1), and its folder too (2). `open_to_others`: what of
    its path others may write to."""

    file: str
    added: bool
    made: int
    open_to_others: tuple[str, ...]


@dataclass(frozen=True)
class LogoutRules:
    """What a logout does to processes of `user`. `unit`: units of its own can be started; else `said` says why not.
    `start` is how runs are started there."""

    user: str
    ends: bool
    lingers: bool | None
    unit: bool
    said: str
    start: str


class Stored(NamedTuple):
    """One thing in Holdfast's folder on a host."""

    name: str
    size: int


class ProjectRuns(NamedTuple):
    """Runs of one project on a host; `living` of them have not ended."""

    project_id: str
    runs: int
    living: int


@dataclass(frozen=True)
class Inventory:
    """All that Holdfast has on a host: `home` is its one folder there, for all projects and laptops of the account."""

    home: str
    stored: tuple[Stored, ...]
    runs: tuple[ProjectRuns, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.stored)

    @property
    def living(self) -> int:
        return sum(each.living for each in self.runs)


@dataclass(frozen=True)
class Purged:
    """Bytes that were removed, and what stays."""

    removed: int
    kept: tuple[str, ...]


@dataclass(frozen=True)
class LeftFiles:
    """What a run left that another can go on from: how many files, and their bytes."""

    files: int
    size: int


@dataclass(frozen=True)
class KeptData:
    """Data that a host keeps. `names` are what people called it, `used` is the host's time; `users` have not ended."""

    digest: str
    names: tuple[str, ...]
    files: int
    size: int
    used: Seconds
    users: tuple[str, ...]


@dataclass(frozen=True)
class SeenData:
    """What lies on a host anyway; `digest` is of names, sizes and times. Not `is_whole`: of the first files."""

    path: str
    files: int
    size: int
    digest: str
    is_whole: bool


@dataclass(frozen=True)
class Bytes:
    """How many were removed."""

    removed: int
