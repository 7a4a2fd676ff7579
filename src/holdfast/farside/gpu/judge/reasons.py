"""What a verdict can be: its states, and a closed set of reasons, each with what is said and what can be done. Pure.

A text has blanks (`%(device)s`); `Blanks` are all that there are. The check of an environment has words of its own.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

USED, PARTLY_USED, NOT_USED = "used", "partly-used", "not-used"
NOT_ASKED, NOT_AVAILABLE, UNKNOWN = "not-asked", "not-available", "unknown"
PREFIXES = {
    USED: "GPU used: ",
    PARTLY_USED: "GPU partly used: ",
    NOT_USED: "GPU NOT used: ",
    NOT_ASKED: "GPU not asked for",
    NOT_AVAILABLE: "GPU not available: ",
    UNKNOWN: "GPU use unknown: ",
}
STATES = tuple(PREFIXES)
OK = "ok"
CPU_BUILD, WRONG_BUILD, DRIVER_TOO_OLD, NO_CODE = "cpu-build", "wrong-build", "driver-too-old", "no-code-for-gpu"
HIDDEN, CONTAINER, UNTOUCHED, IDLE, STRANGER = "hidden", "container-without-gpus", "untouched", "idle", "stranger"
PARTLY, OTHER_DEVICE, LOST = "partly", "other-device", "device-lost"
OUT_OF_MEMORY, LEFT = "out-of-gpu-memory", "memory-left"
NO_GPU, TOO_FEW, NO_DRIVER = "no-gpu", "too-few-gpus", "no-driver"
TOO_SHORT, NO_ATTRIBUTION, STALLED, NOT_WATCHED = "too-short", "no-attribution", "nvml-stalled", "not-watched"
SUPERVISOR_LOST, INTERRUPTED = "supervisor-lost", "interrupted-before-start"


class DeviceUse(NamedTuple):
    """How a run used one device: mean in per cent over the script's time, bytes, seconds after its start, and the share
    of its time in which the device computed for it."""

    number: int
    uuid: str
    name: str
    mean: Optional[float]
    peak_memory: Optional[int]
    first_use: Optional[float]
    busy: Optional[float]
    is_leased: bool


class Verdict(NamedTuple):
    """The journal's event `gpu`. `waited` is the share of the script's time in which the GPUs waited, as far as they
    were watched; `spells` are the longest times without work, in seconds after its start; `evidence` is `utilisation`,
    `memory`, `device` or empty."""

    state: str
    reason: str
    sentence: str
    remedy: str
    devices: Tuple[DeviceUse, ...] = ()
    waited: Optional[float] = None
    spells: Tuple[Tuple[float, float], ...] = ()
    evidence: str = ""

    def as_json(self) -> Dict[str, Any]:
        return dict(self._asdict(), devices=[each._asdict() for each in self.devices])


class Blanks(NamedTuple):
    """Values for the placeholders in the texts of a `Cause`."""

    devices: str = "the GPUs"
    """The devices that a text is about; if they were used, with how much."""
    detail: str = ""
    """Which process, which share, or what the driver said."""
    visible: str = "empty"
    file: str = "the target's .compute file"
    by: str = "`--gpus`"
    """Where the run asks for GPUs."""
    asking: str = ""
    """The same at the end of a sentence: `: the run asks with …`. Empty if the run does not ask."""
    number: str = "1"
    """How many GPUs the run should have asked for."""
    amount: str = ""
    """How much memory the run asks for."""
    pids: str = "PID"
    driver: str = "unknown"
    looks: str = "0 looks"


class Cause(NamedTuple):
    """Why a GPU was not used, or cannot be: what is said, and what can be done. A text may have blanks to be filled.
    `is_fatal`: a run that must have a GPU does not start."""

    reason: str
    sentence: str
    remedy: str
    is_fatal: bool = True


_CAUSES = (
    Cause(OK, "%(devices)s", ""),
    Cause(NOT_ASKED, "", ""),
    Cause(
        CPU_BUILD,
        "the output says that the framework was built without CUDA",
        "Install its build for CUDA: `holdfast environment check` names the line to write.",
    ),
    Cause(
        WRONG_BUILD,
        "the output says that the framework cannot load what it needs for the GPU",
        "`holdfast environment check` names what does not fit; for TensorFlow write `tensorflow[and-cuda]`.",
    ),
    Cause(
        DRIVER_TOO_OLD,
        "the output says that the driver (%(driver)s) is too old for the CUDA that the framework was built for",
        "Update the NVIDIA driver of the machine, or take the build that `holdfast environment check` names.",
    ),
    Cause(
        NO_CODE,
        "the output says that the framework has no code for %(devices)s",
        "Take a release that was built for this GPU: `holdfast environment check` names the line to write.",
    ),
    Cause(
        HIDDEN,
        "`CUDA_VISIBLE_DEVICES` is %(visible)s, which hides %(devices)s",
        "Take `CUDA_VISIBLE_DEVICES` out of the run configuration's environment variables, of the machine's start-up "
        "files, and of the shell from which a run on this machine is submitted (`unset CUDA_VISIBLE_DEVICES`); or ask "
        "for GPUs with `--gpus 1`, which sets it.",
    ),
    Cause(
        CONTAINER,
        "the container has no GPUs; the machine has %(devices)s",
        "Write `nvidiaDocker: true` in %(file)s, or submit with `--gpus all`.",
    ),
    Cause(
        UNTOUCHED,
        "no process of the run opened a GPU in %(looks)s; it had %(devices)s",
        "Move the model and its data to the GPU in the script (PyTorch: `.to('cuda')`, and check "
        "`torch.cuda.is_available()`); `holdfast environment check` says whether what is installed can use it. "
        "For a script that needs none write `--gpus 0`.",
    ),
    Cause(
        IDLE,
        "a process of the run held memory of the GPU and computed nothing in %(looks)s: %(devices)s",
        "Move the work to the GPU in the script, not only the model or a first tensor.",
    ),
    Cause(
        STRANGER,
        "what %(devices)s computed was for others: %(detail)s",
        "See who uses it with `holdfast computetarget gpus NAME`; with `--gpus 1` a run waits for a GPU of its own.",
    ),
    Cause(
        PARTLY,
        "%(detail)s: %(devices)s",
        "The run asks with %(by)s: write `--gpus %(number)s`, or let the script use all that it has.",
    ),
    Cause(
        OTHER_DEVICE,
        "the work was on a GPU that is not leased to the run: %(devices)s",
        "Do not set `CUDA_VISIBLE_DEVICES` in the script or the run configuration: the lease sets it, and the script's "
        "first device is `cuda:0`.",
    ),
    Cause(
        LOST,
        "%(detail)s",
        "Look at `dmesg` for `Xid` on the machine; `sudo nvidia-smi --gpu-reset` or a restart of it brings a GPU back.",
    ),
    Cause(
        OUT_OF_MEMORY,
        "the memory of the GPU was exhausted: %(devices)s",
        "Use a smaller batch or model, or a GPU with more free memory: `--min-gpu-memory 16GiB`.",
    ),
    Cause(
        LEFT,
        "%(devices)s; after the end %(detail)s",
        "End what is left on the machine with `kill -9 %(pids)s`, or restart the machine where the driver holds it.",
    ),
    Cause(
        NO_GPU,
        "the machine has an NVIDIA driver (%(driver)s) and no GPU",
        "Choose a compute target with a GPU (`holdfast computetarget list`), or do not ask for one%(asking)s.",
    ),
    Cause(
        TOO_FEW,
        "%(by)s asks for more than the machine has: %(detail)s",
        "Ask for %(number)s at most, or submit to a machine with more.",
    ),
    Cause(
        NO_DRIVER,
        "the machine has no NVIDIA driver",
        "Install the NVIDIA driver on the machine until `nvidia-smi` lists its GPUs, choose another compute target, "
        "or do not ask for a GPU%(asking)s.",
    ),
    Cause(
        TOO_SHORT,
        "the script ran too short to be watched: %(looks)s, and three are needed",
        "Nothing is to be changed: there is a look every second, and a script with three of them is judged.",
    ),
    Cause(
        NO_ATTRIBUTION,
        "whether work on %(devices)s was the run's cannot be seen on this machine",
        "Ask for the GPU with `--gpus 1`: what a leased GPU does is the run's. Or run Holdfast where all processes are "
        "visible: not in a container without `--pid=host`, nor with `hidepid` on `/proc`.",
    ),
    Cause(
        STALLED,
        "the driver did not answer while the script ran",
        "See whether `nvidia-smi` answers on the machine; where it hangs, restart the machine or its driver.",
    ),
    Cause(
        NOT_WATCHED,
        "%(devices)s can be named, but what it does cannot be watched",
        "For AMD's GPUs install `amdsmi` on the machine; others cannot be watched, so the script has to tell.",
    ),
    Cause(
        SUPERVISOR_LOST,
        "the run was ended from outside, and what was seen until then proves nothing",
        "Submit it again; `holdfast history info` says what ended it.",
    ),
    Cause(
        INTERRUPTED,
        "the run ended before its script started",
        "Submit it again; `holdfast history info` says what ended it.",
    ),
)
WORDS: Dict[str, Cause] = {each.reason: each for each in _CAUSES}
REASONS: Tuple[str, ...] = tuple(WORDS)

SAID: Dict[str, Cause] = {
    HIDDEN: Cause(
        HIDDEN,
        "the output says that the script found no GPU; the machine has %(devices)s",
        "See whether the script sets `CUDA_VISIBLE_DEVICES` itself; `holdfast environment check` says whether what is "
        "installed can use the GPU.",
    ),
    NO_DRIVER: Cause(
        NO_DRIVER,
        "the output says that the script found no NVIDIA driver; the machine has one (%(driver)s)",
        "See whether `nvidia-smi` works where the script runs; `holdfast environment check` says whether what is "
        "installed can use the GPU.",
    ),
    LOST: Cause(LOST, "the output says that the GPU failed: %(devices)s", WORDS[LOST].remedy),
    OUT_OF_MEMORY: Cause(
        OUT_OF_MEMORY,
        "the output says that the memory of the GPU was exhausted: %(devices)s",
        WORDS[OUT_OF_MEMORY].remedy,
    ),
}
"""Instead of a reason's words where it is known from the output alone."""


_VISIBLE = (
    "run Holdfast where all processes are visible: not in a container without `--pid=host`, nor with `hidepid` on "
    "`/proc`."
)


BROKEN = Cause(LOST, "no GPU works: %(detail)s", WORDS[LOST].remedy)
FAILING = Cause(
    NO_DRIVER,
    "the NVIDIA driver does not work: %(detail)s",
    "Fix the NVIDIA driver until `nvidia-smi` lists the machine's GPUs, choose another compute target, or do not "
    "ask for a GPU%(asking)s.",
)
SILENT = Cause(STALLED, "the NVIDIA driver does not answer: %(detail)s", WORDS[STALLED].remedy)
TOO_SMALL = Cause(
    TOO_FEW,
    "no GPU of this machine has %(amount)s of memory; the largest has %(detail)s",
    "Lower `--min-gpu-memory` (`MinGpuMemory` in the run configuration), or submit to a machine with larger GPUs.",
)
OCCUPIED = Cause(
    STRANGER,
    "other processes are on every GPU that the script can see: %(detail)s",
    "See who is there with `holdfast computetarget gpus NAME`, and submit again when one is free; with `--gpus 1` "
    "a run waits for that by itself.",
)
TOO_FULL = Cause(
    OUT_OF_MEMORY,
    "no GPU has the %(amount)s of free memory that are asked for: %(detail)s",
    "Lower `--min-gpu-memory`, or wait for others: `holdfast computetarget gpus NAME` shows who they are.",
)
OBEYED = Cause(
    HIDDEN,
    WORDS[HIDDEN].sentence,
    "Take `CUDA_VISIBLE_DEVICES` out of the run configuration's environment variables, or of the image: what is "
    "written there is obeyed, whatever GPUs the run has.",
)
JOINED = Cause(
    STRANGER,
    WORDS[STRANGER].sentence,
    "See who uses it with `holdfast computetarget gpus NAME`: who does not use Holdfast does not heed a lease.",
)
SELDOM = Cause(
    PARTLY,
    "the GPU worked only %(detail)s of the time since its first use: %(devices)s",
    "Prepare the data beside the training (more workers that load it), or give the GPU more at once; "
    "`holdfast history info` shows when it waited.",
)
GONE = Cause(
    LEFT,
    WORDS[LEFT].sentence,
    "There is no process to end any more: where `nvidia-smi` still shows the memory, reset the GPU "
    "(`sudo nvidia-smi --gpu-reset`) or restart the machine.",
)
LEASED = Cause(
    NO_ATTRIBUTION,
    WORDS[NO_ATTRIBUTION].sentence,
    "See who else is on it with `holdfast computetarget gpus NAME`, or " + _VISIBLE,
)
INSTANCE = Cause(
    NO_ATTRIBUTION,
    "the driver does not say how much the instances of %(devices)s compute, and named no process there that is "
    "known to be the run's",
    "Let the script say where it computes (PyTorch: `print(next(model.parameters()).device)`), or " + _VISIBLE,
)
OCCASIONS: Tuple[Tuple[str, Cause], ...] = (
    ("before the start: no GPU of the machine works", BROKEN),
    ("before the start: the driver is there and fails", FAILING),
    ("before the start: the driver does not answer", SILENT),
    ("before the start: no GPU has as much memory as is asked for", TOO_SMALL),
    ("before the start: others are on all GPUs, if only with memory that they hold", OCCUPIED),
    ("before the start: no GPU has as much free memory as is asked for", TOO_FULL),
    ("the run asks for GPUs, or is in a container", OBEYED),
    ("the run had leased the GPU", JOINED),
    ("hardly any of the time", SELDOM),
    ("the processes are gone, and the driver still counts their memory", GONE),
    ("the run had leased the GPU", LEASED),
    ("the GPU is cut by MIG", INSTANCE),
)
"""When these words are used instead of the reason's own: for the reference page."""


def filled(found: Union[str, Cause], blanks: Blanks) -> Cause:
    """The words of a reason, or those for an occasion, without a full stop."""
    cause = WORDS[found] if isinstance(found, str) else found
    known = blanks._asdict()
    return cause._replace(sentence=cause.sentence % known, remedy=cause.remedy % known)


def said(reason: str) -> Cause:
    """For a reason that is known from the run's output."""
    return SAID.get(reason, WORDS[reason])


def answer(state: str, found: Union[str, Cause], blanks: Blanks) -> Verdict:
    return worded(state, filled(found, blanks))


def worded(state: str, cause: Cause) -> Verdict:
    shown = PREFIXES[state] + cause.sentence
    return Verdict(state, cause.reason, shown if cause.reason == OK else shown.rstrip(". ") + ".", cause.remedy)
