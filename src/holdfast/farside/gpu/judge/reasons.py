"""Why a verdict is what it is: a closed set, each with what is said and what can be done about it. Pure.

A text has blanks (`%(device)s`); `Blanks` are all that there are. What the environment's check found has words of its
own, which are used instead; `occasions` has those of a reason that needs other words at times.
"""

from typing import Dict, NamedTuple, Tuple

OK, NOT_ASKED = "ok", "not-asked"
CPU_BUILD, WRONG_BUILD, DRIVER_TOO_OLD, NO_CODE = "cpu-build", "wrong-build", "driver-too-old", "no-code-for-gpu"
HIDDEN, CONTAINER, UNTOUCHED, IDLE, STRANGER = "hidden", "container-without-gpus", "untouched", "idle", "stranger"
PARTLY, OTHER_DEVICE, LOST = "partly", "other-device", "device-lost"
OUT_OF_MEMORY, LEFT = "out-of-gpu-memory", "memory-left"
NO_GPU, TOO_FEW, NO_DRIVER = "no-gpu", "too-few-gpus", "no-driver"
TOO_SHORT, NO_ATTRIBUTION, STALLED, NOT_WATCHED = "too-short", "no-attribution", "nvml-stalled", "not-watched"
SUPERVISOR_LOST, INTERRUPTED = "supervisor-lost", "interrupted-before-start"


class Blanks(NamedTuple):
    """What stands in the texts."""

    devices: str = "the GPUs"
    """What was used, with how much of it, or which devices are meant."""
    detail: str = ""
    """The part that is particular: which process, which share, what the driver said."""
    visible: str = "empty"
    file: str = "the target's .compute file"
    by: str = "`--gpus`"
    """Where the run asks for GPUs."""
    asking: str = ""
    """The same behind what is not to be asked: `: the run asks with …`. Empty if the run does not ask."""
    number: str = "1"
    """Of GPUs, what would have been right."""
    amount: str = ""
    """Of memory, what is asked for."""
    pids: str = "PID"
    driver: str = "unknown"
    looks: str = "0 looks"


class Words(NamedTuple):
    sentence: str
    remedy: str


WORDS: Dict[str, Words] = {
    OK: Words("%(devices)s", ""),
    NOT_ASKED: Words("", ""),
    CPU_BUILD: Words(
        "the output says that the framework was built without CUDA",
        "Install its build for CUDA: `holdfast environment check` names the line to write.",
    ),
    WRONG_BUILD: Words(
        "the output says that the framework cannot load what it needs for the GPU",
        "`holdfast environment check` names what does not fit; for TensorFlow write `tensorflow[and-cuda]`.",
    ),
    DRIVER_TOO_OLD: Words(
        "the output says that the driver (%(driver)s) is too old for the CUDA that the framework was built for",
        "Update the NVIDIA driver of the machine, or take the build that `holdfast environment check` names.",
    ),
    NO_CODE: Words(
        "the output says that the framework has no code for %(devices)s",
        "Take a release that was built for this GPU: `holdfast environment check` names the line to write.",
    ),
    HIDDEN: Words(
        "`CUDA_VISIBLE_DEVICES` is %(visible)s, which hides %(devices)s",
        "Take `CUDA_VISIBLE_DEVICES` out of the run configuration's environment variables, of the machine's start-up "
        "files, and of the shell from which a run on this machine is submitted (`unset CUDA_VISIBLE_DEVICES`); or ask "
        "for GPUs with `--gpus 1`, which sets it.",
    ),
    CONTAINER: Words(
        "the container has no GPUs; the machine has %(devices)s",
        "Write `nvidiaDocker: true` in %(file)s, or submit with `--gpus all`.",
    ),
    UNTOUCHED: Words(
        "no process of the run opened a GPU in %(looks)s; it had %(devices)s",
        "Move the model and its data to the GPU in the script (PyTorch: `.to('cuda')`, and check "
        "`torch.cuda.is_available()`); `holdfast environment check` says whether what is installed can use it. "
        "For a script that needs none write `--gpus 0`.",
    ),
    IDLE: Words(
        "a process of the run held memory of the GPU and computed nothing in %(looks)s: %(devices)s",
        "Move the work to the GPU in the script, not only the model or a first tensor.",
    ),
    STRANGER: Words(
        "what %(devices)s computed was for others: %(detail)s",
        "See who uses it with `holdfast computetarget gpus NAME`; with `--gpus 1` a run waits for a GPU of its own.",
    ),
    PARTLY: Words(
        "%(detail)s: %(devices)s",
        "The run asks with %(by)s: write `--gpus %(number)s`, or let the script use all that it has.",
    ),
    OTHER_DEVICE: Words(
        "the work was on a GPU that is not leased to the run: %(devices)s",
        "Do not set `CUDA_VISIBLE_DEVICES` in the script or the run configuration: the lease sets it, and the script's "
        "first device is `cuda:0`.",
    ),
    LOST: Words(
        "%(detail)s",
        "Look at `dmesg` for `Xid` on the machine; `sudo nvidia-smi --gpu-reset` or a restart of it brings a GPU back.",
    ),
    OUT_OF_MEMORY: Words(
        "the memory of the GPU was exhausted: %(devices)s",
        "Use a smaller batch or model, or a GPU with more free memory: `--min-gpu-memory 16GiB`.",
    ),
    LEFT: Words(
        "%(devices)s; after the end %(detail)s",
        "End what is left on the machine with `kill -9 %(pids)s`, or restart the machine where the driver holds it.",
    ),
    NO_GPU: Words(
        "the machine has an NVIDIA driver (%(driver)s) and no GPU",
        "Choose a compute target with a GPU (`holdfast computetarget list`), or do not ask for one%(asking)s.",
    ),
    TOO_FEW: Words(
        "%(by)s asks for more than the machine has: %(detail)s",
        "Ask for %(number)s at most, or submit to a machine with more.",
    ),
    NO_DRIVER: Words(
        "the machine has no NVIDIA driver",
        "Install the NVIDIA driver on the machine until `nvidia-smi` lists its GPUs, choose another compute target, "
        "or do not ask for a GPU%(asking)s.",
    ),
    TOO_SHORT: Words(
        "the script ran too short to be watched: %(looks)s, and three are needed",
        "Nothing is to be changed: there is a look every second, and a script with three of them is judged.",
    ),
    NO_ATTRIBUTION: Words(
        "whether work on %(devices)s was the run's cannot be seen on this machine",
        "Ask for the GPU with `--gpus 1`: what a leased GPU does is the run's. Or run Holdfast where all processes are "
        "visible: not in a container without `--pid=host`, nor with `hidepid` on `/proc`.",
    ),
    STALLED: Words(
        "the driver did not answer while the script ran",
        "See whether `nvidia-smi` answers on the machine; where it hangs, restart the machine or its driver.",
    ),
    NOT_WATCHED: Words(
        "%(devices)s can be named, but what it does cannot be watched",
        "For AMD's GPUs install `amdsmi` on the machine; others cannot be watched, so the script has to tell.",
    ),
    SUPERVISOR_LOST: Words(
        "the run was ended from outside, and what was seen until then proves nothing",
        "Submit it again; `holdfast history info` says what ended it.",
    ),
    INTERRUPTED: Words(
        "the run ended before its script started",
        "Submit it again; `holdfast history info` says what ended it.",
    ),
}
REASONS: Tuple[str, ...] = tuple(WORDS)

SAID: Dict[str, Words] = {
    HIDDEN: Words(
        "the output says that the script found no GPU; the machine has %(devices)s",
        "See whether the script sets `CUDA_VISIBLE_DEVICES` itself; `holdfast environment check` says whether what is "
        "installed can use the GPU.",
    ),
    NO_DRIVER: Words(
        "the output says that the script found no NVIDIA driver; the machine has one (%(driver)s)",
        "See whether `nvidia-smi` works where the script runs; `holdfast environment check` says whether what is "
        "installed can use the GPU.",
    ),
    LOST: Words("the output says that the GPU failed: %(devices)s", WORDS[LOST].remedy),
    OUT_OF_MEMORY: Words(
        "the output says that the memory of the GPU was exhausted: %(devices)s", WORDS[OUT_OF_MEMORY].remedy
    ),
}
"""Instead of a reason's words where it is known from the output alone."""


def words(reason: str, blanks: Blanks, is_said: bool = False) -> Words:
    """Without a full stop behind the sentence. `is_said`: the run's output is what it is known from."""
    return filled(SAID.get(reason, WORDS[reason]) if is_said else WORDS[reason], blanks)


def filled(found: Words, blanks: Blanks) -> Words:
    known = blanks._asdict()
    return Words(found.sentence % known, found.remedy % known)


_VISIBLE = (
    "run Holdfast where all processes are visible: not in a container without `--pid=host`, nor with `hidepid` on "
    "`/proc`."
)


class Occasion(NamedTuple):
    """`when` is for the reference page."""

    reason: str
    when: str
    words: Words


BROKEN = Occasion(
    LOST,
    "before the start: no GPU of the machine works",
    Words("no GPU works: %(detail)s", WORDS[LOST].remedy),
)
FAILING = Occasion(
    NO_DRIVER,
    "before the start: the driver is there and fails",
    Words(
        "the NVIDIA driver does not work: %(detail)s",
        "Fix the NVIDIA driver until `nvidia-smi` lists the machine's GPUs, choose another compute target, or do not "
        "ask for a GPU%(asking)s.",
    ),
)
SILENT = Occasion(
    STALLED,
    "before the start: the driver does not answer",
    Words("the NVIDIA driver does not answer: %(detail)s", WORDS[STALLED].remedy),
)
TOO_SMALL = Occasion(
    TOO_FEW,
    "before the start: no GPU has as much memory as is asked for",
    Words(
        "no GPU of this machine has %(amount)s of memory; the largest has %(detail)s",
        "Lower `--min-gpu-memory` (`MinGpuMemory` in the run configuration), or submit to a machine with larger GPUs.",
    ),
)
OCCUPIED = Occasion(
    STRANGER,
    "before the start: others are on all GPUs, be it only with memory that they hold",
    Words(
        "other processes are on every GPU that the script can see: %(detail)s",
        "See who is there with `holdfast computetarget gpus NAME`, and submit again when one is free; with `--gpus 1` "
        "a run waits for that by itself.",
    ),
)
TOO_FULL = Occasion(
    OUT_OF_MEMORY,
    "before the start: no GPU has as much free memory as is asked for",
    Words(
        "no GPU has the %(amount)s of free memory that are asked for: %(detail)s",
        "Lower `--min-gpu-memory`, or wait for others: `holdfast computetarget gpus NAME` shows who they are.",
    ),
)
OBEYED = Occasion(
    HIDDEN,
    "the run asks for GPUs, or is in a container",
    Words(
        WORDS[HIDDEN].sentence,
        "Take `CUDA_VISIBLE_DEVICES` out of the run configuration's environment variables, or of the image: what is "
        "written there is obeyed, whatever GPUs the run has.",
    ),
)
JOINED = Occasion(
    STRANGER,
    "the run had leased the GPU",
    Words(
        WORDS[STRANGER].sentence,
        "See who uses it with `holdfast computetarget gpus NAME`: who does not use Holdfast does not heed a lease.",
    ),
)
SELDOM = Occasion(
    PARTLY,
    "hardly any of the time",
    Words(
        "the GPU worked only %(detail)s of the time since its first use: %(devices)s",
        "Prepare the data beside the training (more workers that load it), or give the GPU more at once; "
        "`holdfast history info` shows when it waited.",
    ),
)
GONE = Occasion(
    LEFT,
    "the processes are gone, and the driver still counts their memory",
    Words(
        WORDS[LEFT].sentence,
        "There is no process to end any more: where `nvidia-smi` still shows the memory, reset the GPU "
        "(`sudo nvidia-smi --gpu-reset`) or restart the machine.",
    ),
)
LEASED = Occasion(
    NO_ATTRIBUTION,
    "the run had leased the GPU",
    Words(
        WORDS[NO_ATTRIBUTION].sentence,
        "See who else is on it with `holdfast computetarget gpus NAME`, or " + _VISIBLE,
    ),
)
INSTANCE = Occasion(
    NO_ATTRIBUTION,
    "the GPU is cut by MIG",
    Words(
        "the driver does not say how much the instances of %(devices)s compute, and named no process there that is "
        "known to be the run's",
        "Let the script say where it computes (PyTorch: `print(next(model.parameters()).device)`), or " + _VISIBLE,
    ),
)
OCCASIONS: Tuple[Occasion, ...] = (
    *(BROKEN, FAILING, SILENT, TOO_SMALL, OCCUPIED, TOO_FULL),
    *(OBEYED, JOINED, SELDOM, GONE, LEASED, INSTANCE),
)
