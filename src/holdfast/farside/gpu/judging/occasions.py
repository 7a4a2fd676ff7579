"""Other words for a reason on an occasion that its own do not fit: what is known before the script starts, and what a
run has done already that it would be told to do. A closed set too. Pure."""

from typing import NamedTuple, Tuple

from holdfast.farside.gpu.judging import reasons
from holdfast.farside.gpu.judging.reasons import WORDS, Words

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
    reasons.LOST,
    "before the start: no GPU of the machine works",
    Words("no GPU works: %(detail)s", WORDS[reasons.LOST].remedy),
)
FAILING = Occasion(
    reasons.NO_DRIVER,
    "before the start: the driver is there and fails",
    Words(
        "the NVIDIA driver does not work: %(detail)s",
        "Mend the NVIDIA driver until `nvidia-smi` lists the machine's GPUs, choose another compute target, or do not "
        "ask for a GPU%(asking)s.",
    ),
)
SILENT = Occasion(
    reasons.STALLED,
    "before the start: the driver does not answer",
    Words("the NVIDIA driver does not answer: %(detail)s", WORDS[reasons.STALLED].remedy),
)
TOO_SMALL = Occasion(
    reasons.TOO_FEW,
    "before the start: no GPU has as much memory as is asked for",
    Words(
        "no GPU of this machine has %(amount)s of memory; the largest has %(detail)s",
        "Lower `--min-gpu-memory` (`MinGpuMemory` in the run configuration), or submit to a machine with larger GPUs.",
    ),
)
OCCUPIED = Occasion(
    reasons.STRANGER,
    "before the start: others are on all GPUs, be it only with memory that they hold",
    Words(
        "other processes are on every GPU that the script can see: %(detail)s",
        "See who is there with `holdfast computetarget gpus NAME`, and submit again when one is free; with `--gpus 1` "
        "a run waits for that by itself.",
    ),
)
TOO_FULL = Occasion(
    reasons.OUT_OF_MEMORY,
    "before the start: no GPU has as much free memory as is asked for",
    Words(
        "no GPU has the %(amount)s of free memory that are asked for: %(detail)s",
        "Lower `--min-gpu-memory`, or wait for others: `holdfast computetarget gpus NAME` shows who they are.",
    ),
)
OBEYED = Occasion(
    reasons.HIDDEN,
    "the run asks for GPUs, or is in a container",
    Words(
        WORDS[reasons.HIDDEN].sentence,
        "Take `CUDA_VISIBLE_DEVICES` out of the run configuration's environment variables, or of the image: what is "
        "written there is obeyed, whatever GPUs the run has.",
    ),
)
JOINED = Occasion(
    reasons.STRANGER,
    "the run had leased the GPU",
    Words(
        WORDS[reasons.STRANGER].sentence,
        "See who uses it with `holdfast computetarget gpus NAME`: who does not use Holdfast does not heed a lease.",
    ),
)
SELDOM = Occasion(
    reasons.PARTLY,
    "hardly any of the time",
    Words(
        "the GPU worked only %(detail)s of the time since its first use: %(devices)s",
        "Prepare the data beside the training (more workers that load it), or give the GPU more at once; "
        "`holdfast history info` shows when it waited.",
    ),
)
GONE = Occasion(
    reasons.LEFT,
    "the processes are gone, and the driver still counts their memory",
    Words(
        WORDS[reasons.LEFT].sentence,
        "There is no process to end any more: where `nvidia-smi` still shows the memory, reset the GPU "
        "(`sudo nvidia-smi --gpu-reset`) or restart the machine.",
    ),
)
LEASED = Occasion(
    reasons.NO_ATTRIBUTION,
    "the run had leased the GPU",
    Words(
        WORDS[reasons.NO_ATTRIBUTION].sentence,
        "See who else is on it with `holdfast computetarget gpus NAME`, or " + _VISIBLE,
    ),
)
INSTANCE = Occasion(
    reasons.NO_ATTRIBUTION,
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
