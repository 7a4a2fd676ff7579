"""What people write about the files that come home: sizes of `OutputsLimit`, globs of `Outputs`."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.project.quantities import parse_size
from holdfast.written_files import UNLIMITED, path_inside

_NONE = "none"


def parse_limit(text: str) -> int:
    """Bytes of `500 MB`, `0` or `none`. Raises UsageError."""
    if text.strip().lower() == _NONE:
        return UNLIMITED
    try:
        return min(parse_size(text), UNLIMITED)
    except UsageError as error:
        raise UsageError(error.message, f"Write it like 500MB or 20GB, or `{_NONE}` for no limit.") from error


def render_limit(limit: int) -> str:
    """As `parse_limit` reads it."""
    if limit >= UNLIMITED:
        return _NONE
    return f"{limit / 1000:.3f}kB" if limit % 1000 else f"{limit // 1000}kB" if limit else "0"


def checked_glob(text: str) -> str:
    """A glob as it takes in files of the project, or beside it: `../logs/`. Raises UsageError for one that can take in
    none."""
    glob = text.replace("\\", "/").removeprefix("./").strip()
    if not glob.strip("/") or glob.startswith("/") or ".." in path_inside(glob).split("/") or not glob.isprintable():
        raise UsageError(
            f"`{text}` takes in no file of the project.", 'Write a file, a folder or a glob: checkpoints/ or "*.pt"'
        )
    return glob
