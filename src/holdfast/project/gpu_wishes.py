"""What users wish of GPUs, typed or written in a run configuration: each wish is declared once, in `WISHES`.

Its field is also one of `farside/gpu/request.py`, which has what the far side is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import UsageError
from holdfast.farside.gpu.request import ALL, GpuRequest
from holdfast.frozen import dataclass
from holdfast.project.quantities import format_duration, parse_duration, parse_size

if TYPE_CHECKING:
    from holdfast.project.fields import Fields


@dataclass(frozen=True)
class GpuWishes:
    """None: not said. `gpus` is a number or `all`, `min_memory` bytes, times are seconds; `quiet_after` 0: never."""

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


class GpuWish(NamedTuple):
    """One field of `GpuWishes`: an option of `submit`, with its help, and a key of run configurations.

    `parse` None: a flag. `written` makes what stands behind the key, `planned` the line of a plan where the wish is not
    what it is by default. `needs_gpus`: it makes no sense for a run that has none, and asks for one.
    """

    name: str
    option: str
    key: str
    help: str
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    written: Callable[[Any], str] = str
    planned: Callable[[Any], str] | None = None
    needs_gpus: bool = True
    offered: tuple[str, ...] = ()

    def place(self, typed: GpuWishes, written: GpuWishes, file: str) -> str:
        """Where the wish is said, for people."""
        value = getattr(typed, self.name)
        if value is not None:
            return f"`{self.option} {value}`" if self.name == "gpus" else f"`{self.option}`"
        value = getattr(written, self.name)
        shows_value = self.name == "gpus" or self.parse is None
        return f"`{self.key}: {self.written(value)}` in {file}" if shows_value else f"`{self.key}` in {file}"


WISHES = (
    GpuWish(
        *("gpus", "--gpus", "Gpus"),
        help="Have so many GPUs for the run alone, waiting for them if need be; 0 hides them from it.",
        metavar="N|all",
        parse=parse_gpus,
        needs_gpus=False,
        offered=("1", "2", "4", "8", "all", "0"),
    ),
    GpuWish(
        *("require", "--require-gpu", "RequireGpu"),
        help="Do not start the script where it could not use a GPU: ends with 252, and says what is missing.",
        written=lambda value: "true" if value else "false",
    ),
    GpuWish(
        *("min_memory", "--min-gpu-memory", "MinGpuMemory"),
        help="With --gpus: only GPUs with so much free memory, e.g. 8GB, 40GiB.",
        metavar="SIZE",
        parse=parse_memory,
        written=lambda value: f"{value}B",
        planned=lambda value: f"with {format_memory(value)} of free memory each",
    ),
    GpuWish(
        *("stop_if_idle", "--stop-if-idle", "StopIfIdle"),
        help="End the run when its GPU has computed nothing for so long, e.g. 30m.",
        metavar="DURATION",
        parse=parse_idle,
        written=format_duration,
        planned=lambda value: f"ended after {format_duration(value)} without GPU work",
    ),
    GpuWish(
        *("quiet_after", "--quiet-after", "QuietAfter"),
        help="Say so when for so long there was neither output nor GPU work; 0 never. [default: 10m]",
        metavar="DURATION",
        parse=parse_duration,
        written=format_duration,
        planned=lambda value: (
            "nothing is said of a run that neither prints nor computes"
            if value is None
            else f"noticed after {format_duration(value)} with neither output nor GPU work"
        ),
        needs_gpus=False,
    ),
)
KEYS = tuple(each.key for each in WISHES)


def read_wishes(fields: Fields) -> GpuWishes:
    """Those of a run configuration; mistakes are added to the problems of its file."""
    found = {each.name: _read(fields, each) for each in WISHES}
    for each in WISHES:
        if each.needs_gpus and found[each.name] and found["gpus"] == 0:
            fields.error(each.key, "is about GPUs, and `Gpus: 0` gives none", "Remove one of the two lines.")
    return GpuWishes(**found)


def render_wishes(wishes: GpuWishes) -> list[str]:
    """The lines of a run configuration that say the same."""
    found = [(each, getattr(wishes, each.name)) for each in WISHES]
    return [f"{wish.key}: {wish.written(value)}" for wish, value in found if value is not None]


def in_force(typed: GpuWishes, written: GpuWishes) -> GpuWishes:
    """What was typed counts before what a run configuration says."""
    if typed.gpus == 0:  # none this time: what the file wants of GPUs does not apply
        written = GpuWishes(**{each.name: getattr(written, each.name) for each in WISHES if not each.needs_gpus})
    chosen = [(each.name, getattr(typed, each.name), getattr(written, each.name)) for each in WISHES]
    return GpuWishes(**{name: later if first is None else first for name, first, later in chosen})


def gpu_request(typed: GpuWishes, written: GpuWishes, file: str, by_target: str = "") -> GpuRequest:
    """What the far side is asked for. `file` is the name of the run configuration; `by_target` says where the target
    gives runs all GPUs, empty where it does not. Raises UsageError for wishes that contradict each other."""
    wishes = in_force(typed, written)
    places = {each.name: each.place(typed, written, file) for each in WISHES if getattr(wishes, each.name) is not None}
    said = [each.name for each in WISHES if each.needs_gpus and getattr(wishes, each.name)]
    gpus = ALL if wishes.gpus is None and by_target else wishes.gpus
    if gpus == 0 and said:
        raise UsageError(
            f"{places[said[0]]} is about GPUs, and {places['gpus']} gives the run none.",
            "Leave out one of them, or ask for a GPU: --gpus 1",
        )
    if gpus is None and wishes.min_memory is not None:
        raise UsageError(
            f"{places['min_memory']} chooses among GPUs that are handed out, and the run asks for none.",
            "Say how many: --gpus 1, or `Gpus: 1` in the run configuration.",
        )
    by = [places.get("gpus", by_target), *(places[name] for name in said)]
    given = {name: getattr(wishes, name) for name in places}
    request = GpuRequest(**given)._replace(gpus=gpus, asked=gpus not in (None, 0) or bool(said))
    return request._replace(quiet_after=request.quiet_after or None, by=next(filter(None, by), ""))


def planned_lines(request: GpuRequest) -> list[str]:
    """What the plan says of each wish that is not as it is by default."""
    found = [(each, getattr(request, each.name), getattr(GpuRequest(), each.name)) for each in WISHES]
    return [wish.planned(value) for wish, value, usual in found if wish.planned and value != usual]


def _read(fields: Fields, wish: GpuWish) -> Any:
    if wish.parse is None:
        return fields.boolean(wish.key, default=False) if fields.has(wish.key) else None
    written = fields.text(wish.key)
    try:
        return None if written is None else wish.parse(written)
    except UsageError as error:
        fields.error(wish.key, error.message.rstrip("."), error.hint)
        return None
