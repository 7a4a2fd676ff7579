"""What a person should know about a snapshot, and how a path is shown to them."""

from __future__ import annotations

from holdfast.frozen import dataclass


@dataclass(frozen=True)
class SnapshotWarning:
    """`path` is relative to the project; `remedy` is what to type or which line to change."""

    path: str
    message: str
    remedy: str


def shown(path: str) -> str:
    """A path for people: in backticks, on one line, without bytes that a terminal cannot print."""
    if path.isprintable():
        return f"`{path}`"
    escaped = "".join(each if each.isprintable() else _escape(each) for each in path)
    return f"`{escaped}`"


def _escape(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"  # a byte that is not UTF-8, as `os.fsdecode` keeps it
    return character.encode("unicode_escape").decode("ascii")
