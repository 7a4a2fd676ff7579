"""What is wished of GPUs, typed or written in a run configuration: how many, which ones, and what if none is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import UsageError
from holdfast.frozen import dataclass
from holdfast.project.quantities import format_duration, parse_duration, parse_size

if TYPE_CHECKING:
    from holdfast.project.fields import Fields

Value = TypeVar("Value")

ALL = "all"
KEYS = ("Gpus", "RequireGpu", "MinGpuMemory", "StopIfIdle", "QuietAfter")


@dataclass(frozen=True)
class GpuWishes:
    """None is not said. `gpus` is a number or `all`, `min_memory` bytes, times are seconds; `quiet_after` 0: never."""

    gpus: int | str | None = None
    require: bool | None = None
    min_memory: int | None = None
    stop_if_idle: float | None = None
    quiet_after: float | None = None


def parse_gpus(text: str) -> int | str:
    written = text.strip().lower()
    if written == ALL:
        return ALL
    if not re.fullmatch(r"[0-9]{1,4}", written):
        raise UsageError(f"`{text}` is not a number of GPUs.", "Write how many, as 1 or 4; `all`; or 0 for none.")
    return int(written)


def parse_memory(text: str) -> int:
    try:
        size = parse_size(text)
    except UsageError as error:
        raise UsageError(error.message, "Write it like 8GB (by 1000) or 40GiB (by 1024).") from None
    if size == 0:
        raise UsageError(
            f"`{text}` asks for no memory, which every GPU has.", "Leave it out, or write a size: 8GB, 40GiB."
        )
    return size


def format_memory(count: int) -> str:
    """As it was typed, and as sizes of GPUs are usually given: `40 GiB`, `80 GB (74.5 GiB)`."""
    gibibytes = f"{count / (1 << 30):.4g} GiB"
    return gibibytes if count % (1 << 20) == 0 else f"{count / 10**9:.4g} GB ({count / (1 << 30):.1f} GiB)"


def parse_idle(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < 1:
        raise UsageError(
            f"`{text}` is too short: a GPU is looked at once a second.", "Write a longer time, as 10m or 1h."
        )
    return seconds


def read_wishes(fields: Fields) -> GpuWishes:
    """Those of a run configuration; mistakes are added to the problems of its file."""
    wishes = GpuWishes(
        gpus=_read(fields, "Gpus", parse_gpus),
        require=fields.boolean("RequireGpu", default=False) if fields.has("RequireGpu") else None,
        min_memory=_read(fields, "MinGpuMemory", parse_memory),
        stop_if_idle=_read(fields, "StopIfIdle", parse_idle),
        quiet_after=_read(fields, "QuietAfter", parse_duration),
    )
    said = {"RequireGpu": wishes.require, "MinGpuMemory": wishes.min_memory, "StopIfIdle": wishes.stop_if_idle}
    for key in (key for key, value in said.items() if value and wishes.gpus == 0):
        fields.error(key, "is about GPUs, and `Gpus: 0` gives none", "Remove one of the two lines.")
    return wishes


def render_wishes(wishes: GpuWishes) -> list[str]:
    """The lines of a run configuration that say the same."""
    found = [] if wishes.gpus is None else [f"Gpus: {wishes.gpus}"]
    found += [] if wishes.require is None else [f"RequireGpu: {'true' if wishes.require else 'false'}"]
    found += [] if wishes.min_memory is None else [f"MinGpuMemory: {wishes.min_memory}B"]
    found += [] if wishes.stop_if_idle is None else [f"StopIfIdle: {format_duration(wishes.stop_if_idle)}"]
    found += [] if wishes.quiet_after is None else [f"QuietAfter: {format_duration(wishes.quiet_after)}"]
    return found


def _read(fields: Fields, key: str, parse: Callable[[str], Value]) -> Value | None:
    written = fields.text(key)
    if written is None:
        return None
    try:
        return parse(written)
    except UsageError as error:
        fields.error(key, error.message.rstrip("."), error.hint)
        return None
