"""Sizes of files, as people read and write them."""

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
    """Bytes. `500MB`, `20 GB`, `1.5T`; `GiB` is counted by 1024. A number without a unit, but 0, is refused: bytes are
    hardly meant."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", text.strip().lower(), re.ASCII)
    if found and not (found[2] or found[3] or found[4]) and float(found[1]):
        raise UsageError(f"`{text}` has no unit.", f"Write it like {found[1]}GB or {found[1]}MB.")
    if not found or (found[3] and not found[2]):
        raise UsageError(f"`{text}` is not a size.", "Write it like 500MB, 20GB or 1.5TB.")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " "))
