"""What a run asks of the GPUs: what was typed, else what the run configuration says, else what the target does."""

from __future__ import annotations

import posixpath

from holdfast.errors import UsageError
from holdfast.plan import QUIET_AFTER, GpuPlan
from holdfast.project.compute import CONTAINER_TYPES
from holdfast.project.configuration import Configuration
from holdfast.project.gpu_wishes import ALL, GpuWishes


def in_force(typed: GpuWishes, written: GpuWishes) -> GpuWishes:
    """What was typed counts before what a run configuration says."""
    if typed.gpus == 0:  # for this once none: what the file wants of GPUs is not meant then
        written = GpuWishes(quiet_after=written.quiet_after)
    return GpuWishes(
        gpus=written.gpus if typed.gpus is None else typed.gpus,
        require=typed.require or written.require,
        min_memory=written.min_memory if typed.min_memory is None else typed.min_memory,
        stop_if_idle=written.stop_if_idle if typed.stop_if_idle is None else typed.stop_if_idle,
        quiet_after=written.quiet_after if typed.quiet_after is None else typed.quiet_after,
    )


def gpu_plan(typed: GpuWishes, configuration: Configuration) -> GpuPlan:
    """Raises UsageError for wishes that contradict each other."""
    wishes = in_force(typed, configuration.run.gpu)
    gpus, by_number = _number(typed, configuration)
    require, min_memory, stop_if_idle = bool(wishes.require), wishes.min_memory, wishes.stop_if_idle
    quiet_after = QUIET_AFTER if wishes.quiet_after is None else wishes.quiet_after
    by_require = _place("--require-gpu", typed.require, "RequireGpu: true", configuration) if require else ""
    by_idle = _place("--stop-if-idle", typed.stop_if_idle, "StopIfIdle", configuration) if stop_if_idle else ""
    if gpus == 0:
        by_memory = _place("--min-gpu-memory", typed.min_memory, "MinGpuMemory", configuration)
        for wish, by in ((require, by_require), (min_memory, by_memory), (stop_if_idle, by_idle)):
            if wish:
                raise _contradiction(by, by_number)
    if gpus is None and min_memory is not None:
        by = _place("--min-gpu-memory", typed.min_memory, "MinGpuMemory", configuration)
        raise UsageError(
            f"{by} chooses among GPUs that are handed out, and the run asks for none.",
            "Say how many: --gpus 1, or `Gpus: 1` in the run configuration.",
        )
    return GpuPlan(
        gpus=gpus,
        require=require,
        min_memory=min_memory,
        stop_if_idle=stop_if_idle,
        quiet_after=quiet_after or None,
        asked=gpus not in (None, 0) or require or stop_if_idle is not None,
        by=by_number or by_require or by_idle,
    )


def _number(typed: GpuWishes, configuration: Configuration) -> tuple[int | str | None, str]:
    """How many, and where that is written."""
    written, target = configuration.run.gpu.gpus, configuration.target
    if typed.gpus is not None:
        return typed.gpus, f"`--gpus {typed.gpus}`"
    if written is not None:
        return written, f"`Gpus: {written}` in {_name(configuration.run.file)}"
    if target.nvidia_docker and target.type in CONTAINER_TYPES:
        return ALL, f"`nvidiaDocker: true` in {_name(target.file)}"
    return None, ""


def _place(option: str, typed: object, key: str, configuration: Configuration) -> str:
    return f"`{option}`" if typed else f"`{key}` in {_name(configuration.run.file)}"


def _name(file: str | None) -> str:
    return posixpath.basename(file or "")


def _contradiction(wish: str, number: str) -> UsageError:
    return UsageError(
        f"{wish} is about GPUs, and {number} gives the run none.",
        "Leave out one of them, or ask for a GPU: --gpus 1",
    )
