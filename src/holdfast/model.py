"""The values that cross every seam: a submission, its plan, how a run ended. Frozen, no input or output."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, NamedTuple

from holdfast.codec import Between
from holdfast.errors import ExitCode
from holdfast.frozen import dataclass, field
from holdfast.given_files import GivenData, GoneOnFrom
from holdfast.shown_text import pasted
from holdfast.written_files import FileSize, LeftThere, OutputWishes

Amount = Annotated[float, Between(0, 1 << 53)]  # what is measured is not negative; bytes of a GPU fit too
YEAR_10000 = 253402300800.0
"""Seconds since 1970 from which on no calendar can show a time: nothing that a clock wrote."""
ClockTime = Annotated[float, Between(-6e10, 6e10)]
"""A time, a duration or a distance of clocks that a calendar has: within two thousand years of 1970."""
RECORD_FORMAT = 1
"""Version of the near run folder (`submission.json`, `plan.json`) and of the far one."""


class Status(Enum):
    """Where a run is. Why it ended is a `Reason`, kept apart."""

    SUBMITTED = "Submitted"
    QUEUED = "Queued"
    PREPARING = "Preparing"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    ABANDONED = "Abandoned"  # given up here; not final, since what the host says later counts

    @property
    def is_final(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELED)


class Reason(Enum):
    """How a run ended. The values are what the far side writes into the journal; `ABANDONED` alone is said here."""

    COMPLETED = "completed"
    EXIT_CODE = "exit-code"
    SIGNAL = "signal"
    KILLED = "killed"
    OUT_OF_MEMORY = "out-of-memory"
    TIME_LIMIT = "time-limit"
    CANCELED = "canceled"
    STOPPED = "stopped"
    SUPERVISOR_DIED = "supervisor-died"
    HOST_REBOOTED = "host-rebooted"
    LOST = "lost"
    PREEMPTED = "preempted"
    ENGINE_LOST = "engine-lost"
    NOT_STARTED = "not-started"
    CANNOT_START = "cannot-start"
    PREPARATION = "preparation"
    CONTAINER = "container"
    CONTAINER_STOPPED = "container-stopped"
    CONTAINER_REMOVED = "container-removed"
    DOCKER_STOPPED = "docker-stopped"
    STORAGE = "storage"
    NO_GPU = "gpu-required"
    GPU_IDLE = "gpu-idle"
    UNKNOWN = "unknown"
    ABANDONED = "abandoned"


class Outcome(NamedTuple):
    """What a reason means: the status it leads to, the exit code of `submit`, a sentence and a remedy.

    `exit_code` None: the script's own code; -1: 128 + the signal. `sentence` and `remedy` may name {code}, {signal},
    {detail}, {run} and {target}.
    """

    status: Status
    exit_code: int | None
    sentence: str
    remedy: str = ""


def _failed(exit_code: int | None, sentence: str, remedy: str = "") -> Outcome:
    return Outcome(Status.FAILED, exit_code, sentence, remedy)


def _lost(sentence: str, remedy: str) -> Outcome:
    return _failed(ExitCode.LOST, sentence, remedy)


OUTCOMES: Mapping[Reason, Outcome] = {
    Reason.COMPLETED: Outcome(Status.COMPLETED, 0, "The script ended by itself with exit code 0."),
    Reason.EXIT_CODE: _failed(
        None, "The script ended with exit code {code}.", "Its output has the cause: holdfast logs -r {run}"
    ),
    Reason.SIGNAL: _failed(-1, "The script was ended by {signal}.", "What it said before that: holdfast logs -r {run}"),
    Reason.KILLED: _failed(
        -1,
        "The script was killed (SIGKILL) by something other than Holdfast; the cause is unknown. {detail}",
        "If memory is the suspect, watch it during the run, or ask the machine's administrator for the kernel's log.",
    ),
    Reason.OUT_OF_MEMORY: _failed(
        -1,
        "The kernel ended the script because memory ran out. {detail}",
        "Use a smaller batch or fewer loader workers, or a machine with more memory.",
    ),
    Reason.TIME_LIMIT: _failed(
        ExitCode.TIME_LIMIT,
        "The run reached its time limit of {detail} and was ended.",
        "Give it more with --time-limit, or `TimeLimit:` in the run configuration.",
    ),
    Reason.CANCELED: Outcome(Status.CANCELED, ExitCode.CANCELED, "The run was canceled. {detail}"),
    Reason.STOPPED: _lost(
        "The run was ended because its supervisor was told to stop ({signal}), as at shutdown or logout.",
        "Submit it again; on a machine that ends a user's processes at logout: loginctl enable-linger",
    ),
    Reason.SUPERVISOR_DIED: _lost(
        "The supervisor of the run died, and the run was ended with it. {detail}",
        "Something killed it from outside (`kill -9`, a crash, memory); submit the run again.",
    ),
    Reason.HOST_REBOOTED: _lost("The machine was restarted while the run was on it.", "Submit the run again."),
    Reason.LOST: _lost(
        "The run's files are gone from its machine, so how it ended is not known.",
        "What had come home is kept. Submit the run again.",
    ),
    Reason.PREEMPTED: _lost("The run was preempted by its engine. {detail}", "Submit it again."),
    Reason.ENGINE_LOST: _lost("The run was ended or lost by its engine: {detail}", "Submit it again."),
    Reason.NOT_STARTED: _failed(
        ExitCode.RUN, "The run never started: its submission was interrupted. {detail}", "Submit it again."
    ),
    Reason.CANNOT_START: _failed(
        ExitCode.RUN,
        "The script could not be started: {detail}",
        "Check `pythonLocation` in the compute target; holdfast experiment submit --dry-run shows the command.",
    ),
    Reason.PREPARATION: _failed(
        ExitCode.PREPARATION,
        "The environment could not be built: {detail}",
        "The installer's own words: holdfast logs -r {run} --control",
    ),
    Reason.CONTAINER: _failed(
        ExitCode.RUN,
        "The script's container could not be started: {detail}",
        "What Docker is and can do on that machine: holdfast computetarget check {target}",
    ),
    Reason.CONTAINER_STOPPED: _lost(
        "The script's container was stopped from outside. {detail}",
        "A person or a program on that machine ended it (`docker stop`, `docker kill`); submit the run again.",
    ),
    Reason.CONTAINER_REMOVED: _lost(
        "The script's container was removed while the script ran. {detail}",
        "A person or a program on that machine ended it (`docker rm -f`); submit the run again.",
    ),
    Reason.DOCKER_STOPPED: _lost(
        "Docker was stopped or restarted on the machine, and the script's container ended with it. {detail}",
        'Submit the run again. Containers outlive that where /etc/docker/daemon.json has "live-restore": true.',
    ),
    Reason.UNKNOWN: _lost(
        "The run ended in a way that this version of Holdfast does not know: {detail}.",
        "A newer version ran it; update this one.",
    ),
    Reason.STORAGE: _failed(
        ExitCode.STORAGE,
        "The machine could not store the run's files: {detail}",
        "Make room there (holdfast experiment clean --all removes ended runs), then submit again.",
    ),
    Reason.NO_GPU: _failed(  # `detail` has its own remedy
        ExitCode.GPU, "The script was not started, for want of a GPU: {detail}"
    ),
    Reason.GPU_IDLE: _failed(
        ExitCode.GPU,
        "The run was ended, because its GPU stayed idle. {detail}",
        "What the GPU did meanwhile: holdfast history info -r {run}",
    ),
    Reason.ABANDONED: Outcome(
        Status.ABANDONED,
        ExitCode.LOST,
        "Given up here, because the machine could not be asked ({detail}). Whether and how it ended is not known.",
        "If the machine can be reached again, its own word counts: holdfast status -r {run}",
    ),
}


_OF_NATIVE_CODE = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_SIGNALS = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM"),
    *("TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF"),
    *("WINCH", "IO", "PWR", "SYS"),
)


def signal_name(number: int | None) -> str:
    """By Linux's numbers, which are those of runs: this system's may differ."""
    if number is None:
        return "no signal"
    return f"SIG{_SIGNALS[number - 1]}" if 0 < number <= len(_SIGNALS) else f"signal {number}"


@dataclass(frozen=True)
class Ending:
    """How a run ended, as the journal has it."""

    reason: Reason
    code: int | None = None
    signal: int | None = None
    detail: str = ""

    @property
    def status(self) -> Status:
        return OUTCOMES[self.reason].status

    @property
    def exit_code(self) -> int:
        code = OUTCOMES[self.reason].exit_code
        if code is None:
            return self.code if self.code is not None else 1
        return 128 + (self.signal or 9) if code == -1 else int(code)

    def sentence(self) -> str:
        return self._fill(OUTCOMES[self.reason].sentence)

    def remedy(self, run_id: str, target: str) -> str:
        if self.reason is Reason.SIGNAL and signal_name(self.signal) in _OF_NATIVE_CODE:
            return f"Native code failed; the stack is in: holdfast logs -r {pasted(run_id)}"
        return self._fill(OUTCOMES[self.reason].remedy, run_id, target)

    def _fill(self, text: str, run_id: str = "", target: str = "") -> str:
        known = {"code": self.code, "signal": signal_name(self.signal), "detail": self.detail}
        return text.format(**known, run=run_id, target=target).strip()


IMPORTED = "imported"
"""The property that names the target from which a run's record was imported."""


@dataclass(frozen=True)
class Place:
    """Where a run is. `machine` identifies the machine, by whatever name it is reached; `folder` is Holdfast's there;
    `node` is the machine's own name, for people."""

    machine: str
    folder: str
    node: str = ""

    def is_same(self, other: Place) -> bool:
        return (self.machine, self.folder) == (other.machine, other.folder)


@dataclass(frozen=True)
class Submission:
    """What was asked for, fixed when the run id was given: `submission.json` of the run."""

    run_id: str
    run_number: Annotated[int, Between(0, 1 << 53)]
    project_id: str
    project_name: str
    script_name: str
    arguments: tuple[str, ...]
    run_configuration: str
    target: str
    target_type: str
    snapshot: str
    created: Annotated[float, Between(0, YEAR_10000)]
    generation: str
    parent_run_id: str | None = None
    tracked: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    sync_outputs: float | None = None
    """Seconds between two fetches of outputs while a client follows the run. None: they are fetched at its end."""
    fetch_outputs: bool = True  # False: outputs stay on the host until the user asks for them
    output_wishes: OutputWishes = OutputWishes()
    command: tuple[str, ...] = ()
    """The words of the run, if they are more than a script's name and `arguments`."""
    folder: str = ""  # where it starts, relative to the project
    terminal: bool = False  # whether the command has one
    earlier: GoneOnFrom | None = None
    data: tuple[GivenData, ...] = ()
    format: int = RECORD_FORMAT


class EndedProcess(NamedTuple):
    """A process of the run that had to be ended, and by which signal: `SIGTERM` or `SIGKILL`."""

    pid: int
    name: str
    signal: str


class UseState(Enum):
    """Whether a run used GPUs. The values are what the far side writes into the journal."""

    USED = "used"
    PARTLY_USED = "partly-used"
    NOT_USED = "not-used"
    NOT_ASKED = "not-asked"
    NOT_AVAILABLE = "not-available"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """For people, in a column."""
        return _USE_WORDS.get(self.value) or self.value.replace("-", " ")


_USE_WORDS = {"partly-used": "partly", "not-used": "NOT used", "not-asked": "not asked for"}


@dataclass(frozen=True)
class GpuUse:
    """The use of one device: mean per cent over the script's time, peak bytes, seconds from its start to the first use,
    and the share of time in which the device computed. None is unknown; no `first_use`: it was not used."""

    number: Annotated[int, Between(0, 1 << 53)] = 0
    uuid: str = ""
    name: str = ""
    mean: Amount | None = None
    peak_memory: Annotated[int, Between(0, 1 << 53)] | None = None
    first_use: Amount | None = None
    busy: Amount | None = None
    is_leased: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether GPUs were used, and why not. `waited` is the share of the script's time in which no GPU worked; `spells`
    are the longest such times, in seconds after its start; `evidence` is `utilisation`, `memory`, `device` or empty."""

    state: UseState
    reason: str = ""
    sentence: str = ""
    remedy: str = ""
    devices: tuple[GpuUse, ...] = ()
    waited: Amount | None = None
    spells: tuple[tuple[Amount, Amount], ...] = ()
    evidence: str = ""


@dataclass(frozen=True)
class Run:
    """One run as the near copies of its files tell it. Made by `history.records`, a pure fold of the journal."""

    submission: Submission
    status: Status
    ending: Ending | None = None
    started: float | None = None
    ended: float | None = None
    exited: float | None = None  # when the script ended; collecting outputs and judging GPUs is not its time
    phase: str = ""
    environment: str | None = None
    python: str = ""
    packages: tuple[str, ...] = ()
    image: str | None = None  # its name, for a run in a container; `image_id` is exact
    image_id: str | None = None
    container: str | None = None
    """The name of the run's container, while there is one."""
    has_gpus: bool | None = None
    """Whether its container has the machine's GPUs. None: it has no container."""
    built_in: float | None = None
    """Seconds that building the environment for this run took. None: it was there, or there is none."""
    ended_processes: tuple[EndedProcess, ...] = ()
    other_files: tuple[FileSize, ...] = ()
    other_files_count: int = 0
    outputs: tuple[FileSize, ...] = ()
    notes: tuple[str, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    clock_offset: float | None = None
    """Seconds by which the host's clock was ahead of this one's. All times but `submission.created` are the host's."""
    outputs_left: bool = False  # on the host only, as the user asked
    left: LeftThere = LeftThere()
    gpu: Verdict | None = None  # None: not judged

    @property
    def run_id(self) -> str:
        return self.submission.run_id

    def how_it_ended(self) -> str:
        """How the run ended, in a sentence; empty while it has not. A preparation runs no script."""
        if self.ending is None:
            return ""
        if not self.submission.script_name and self.ending.reason is Reason.COMPLETED:
            return "The environment is ready; no script was to be run."
        return self.ending.sentence()

    def remedy(self) -> str:
        """What to do about how it ended; empty where there is nothing to do."""
        return "" if self.ending is None else self.ending.remedy(self.run_id, self.submission.target)

    @property
    def duration(self) -> float | None:
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.exited or self.ended) - self.started)

    def running_time(self, now: float) -> float | None:
        """Seconds since the script started, or how long it ran; `now` is by the run's clock."""
        if self.started is None or self.ended is not None or self.status is Status.ABANDONED:
            return self.duration
        return max(0.0, (self.exited or now) - self.started)
