"""How it is said that a run cannot have the GPUs that it asks for."""

from typing import Sequence

from holdfast.farside.gpu.judging.telling import memory, seconds
from holdfast.farside.gpu.leasing.units import Unit
from holdfast.farside.gpu.request import ALL, Request
from holdfast.farside.machine import gpus
from holdfast.farside.machine.gpus import Report
from holdfast.farside.refusal import Refused


def too_many(request: Request, report: Report, found: Sequence[Unit], enough: int) -> Refused:
    """`found` are those that work, of which so many are large enough."""
    asked = _asked(request)
    if not found:
        hint = "Run it where there is one, or without asking for GPUs."
        if report["state"] == gpus.NO_DRIVER:
            return Refused("gpu", "This machine has no NVIDIA driver, and %s." % asked, hint)
        return Refused("gpu", "This machine has no GPU that works, and %s." % asked, hint)
    there = "%d GPU%s" % (len(found), "" if len(found) == 1 else "s")
    if enough == len(found):
        hint = "Ask for at most %d: `--gpus %d`, or `Gpus: %d` in the run configuration." % ((enough,) * 3)
        return Refused("gpu", "This machine has %s, and %s." % (there, asked), hint)
    least = _as_typed(request.min_memory or 0)
    which = "No GPU of this machine has"
    if enough:
        which = "Only %d of this machine's %s %s" % (enough, there, "has" if enough == 1 else "have")
    text = "%s %s of memory or more, and %s." % (which, least, asked)
    largest = max((each.total or 0 for each in found), default=0)
    return Refused("gpu", text, "Its largest has %s: lower `--min-gpu-memory`, or ask for fewer." % memory(largest))


def failing(request: Request, report: Report) -> Refused:
    """The driver's own words say what is wrong with it."""
    why = str(report["problem"] or "the driver does not say why").rstrip(".")
    text = "The GPUs of this machine cannot be used (%s), and %s." % (why, _asked(request))
    return Refused("gpu", text, "Mend the driver (on the machine: nvidia-smi), then submit the run again.")


def dumb(request: Request, waited: float) -> Refused:
    text = "The driver of this machine's GPUs has not answered for %s, and %s." % (seconds(waited), _asked(request))
    return Refused("gpu", text, "Restart the machine, or have its driver mended, then submit the run again.")


def _as_typed(count: int) -> str:
    """Somebody who wrote 80GB does not know it as 74.5 GiB."""
    return memory(count) if count % (1 << 20) == 0 else "%.4g GB (%s)" % (count / 1e9, memory(count))


def _asked(request: Request) -> str:
    return "%s asks for %s" % (request.by or "the run", "a GPU" if request.gpus in (1, ALL) else request.gpus)
