"""Sizes of files and durations, as people read and write them: `1.5 GB`, `500MB`; `90`, `45s`, `1h30m`, `2d`."""

from __future__ import annotations

import re

from holdfast.errors import UsageError

_UNITS = ("kB", "MB", "GB")


def format_size(count: int) -> str:
    """`0 B`, `1.5 kB`, `250 MB`: thousands as the SI has them, three digits at most below a terabyte."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in _UNITS:
        amount /= 1000
        if amount < 99.95:
            return f"{amount:.1f} {unit}"
        if amount < 999.5:
            return f"{amount:.0f} {unit}"
    return f"{amount / 1000:.1f} TB"


def parse_size(text: str) -> int:
    """Bytes. `500MB`, `20 GB`, `1.5T`; `GiB` is counted by 1024. A number without a unit is refused, except 0: bytes
    are rarely meant."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", text.strip().lower(), re.ASCII)
    if found and not (found[2] or found[3] or found[4]) and float(found[1]):
        raise UsageError(f"`{text}` has no unit.", f"Write it like {found[1]}GB or {found[1]}MB.")
    if not found or (found[3] and not found[2]):
        raise UsageError(f"`{text}` is not a size.", "Write it like 500MB, 20GB or 1.5TB.")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " "))


SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
LONGEST = 3_650 * SECONDS["d"]


def parse_duration(text: str) -> float:
    """Seconds. A number without a unit is seconds; units go from large to small."""
    written = text.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", written, re.ASCII):
        written += "s"
    number = r"(\d+(?:\.\d+)?)"
    pattern = f"(?:{number}d)?(?:{number}h)?(?:{number}m)?(?:{number}s)?"
    found = re.fullmatch(pattern, written, re.ASCII)
    if not found or not written:
        raise UsageError(
            f"`{text}` is not a duration.", "Write it like 45s, 10m, 1h30m or 2d; a bare number is seconds."
        )
    seconds = sum(float(each) * SECONDS[unit] for each, unit in zip(found.groups(), "dhms", strict=True) if each)
    if seconds > LONGEST:
        raise UsageError(f"`{text}` is too long.", "The longest duration is 3650d.")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads as the same time, to the millisecond."""
    thousandths = max(0, round(seconds * 1000))
    parts = []
    for unit in "dhm":
        count, thousandths = divmod(thousandths, round(SECONDS[unit] * 1000))
        if count:
            parts.append(f"{count}{unit}")
    if thousandths or not parts:
        parts.append(f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def short_duration(seconds: float | None) -> str:
    """How long something took, for people: `0.03s`, `4.9s`, `3m 20s`, `2h 05m`, `3d 4h`; two units at most. Empty if
    not known."""
    if seconds is None:
        return ""
    if seconds < 59.95:
        return f"{seconds:.2f}s" if 0.005 < seconds < 0.095 else f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"
