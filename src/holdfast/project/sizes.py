"""Sizes of files, as people read them."""

from __future__ import annotations

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
