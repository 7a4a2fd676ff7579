"""What `--from RUN[:PATH]` says."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass


@dataclass(frozen=True)
class EarlierWish:
    """An earlier run by a word for it, and the file or folder of what it wrote; empty for all."""

    run: str
    path: str = ""


def typed_earlier(word: str) -> EarlierWish:
    """What `--from RUN[:PATH]` says. Raises UsageError."""
    run, has_path, typed = word.partition(":")
    path = typed.strip("/") if not typed.startswith("/") else typed
    while path.startswith("./"):
        path = path[2:]
    if not run:
        raise UsageError("--from names no run.", "For example: --from last, --from RUN:checkpoints/last.pt")
    if has_path and not typed:
        raise UsageError(f"`{word}` names no path.", "Leave out the colon, or name one: --from RUN:checkpoints/last.pt")
    is_all = not has_path or path == "."
    parts = path.split("/")
    if not is_all and (any(part in ("", ".", "..") or "\0" in part for part in parts) or reserved_path([path])):
        raise UsageError(
            f"`{typed}` is not a path of the project.", "Name a file or folder as `history info` lists it: outputs/x.pt"
        )
    return EarlierWish(run, "" if is_all else path)
