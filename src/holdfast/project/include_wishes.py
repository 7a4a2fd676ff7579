"""What people write about ignored files that ship: globs of `Include` and `--include`."""

from __future__ import annotations

import re

from holdfast.errors import UsageError

SPECIAL = re.compile(r"[*?\[\\]")
"""What makes a glob of a path."""


def checked_include(text: str, folder: str = "") -> str:
    """The glob as from the project's top, when it was typed in `folder`. A name without a star is a path: only `*.bin`
    is meant at any depth. Raises UsageError for one that can take in no file of the project."""
    body = text.lstrip()
    is_folder, parts = body.endswith("/"), [part for part in body.split("/") if part not in ("", ".")]
    is_anchored = "/" in body.rstrip("/") or not SPECIAL.search(body)
    above = folder.split("/") if folder else []
    while parts and parts[0] == ".." and above:
        above, parts = above[:-1], parts[1:]
        is_anchored = True
    if not body.strip() or not parts or ".." in parts or body.startswith(("/", "~")) or not body.isprintable():
        raise UsageError(
            f"`{text}` takes in no file of the project.", "Write a file, a folder or a glob: data/ or 'data/*.bin'"
        )
    start = [re.sub(r"([\\*?\[])", r"\\\1", part) for part in above]
    if start and not is_anchored:
        start.append("**")
    glob = "/".join((*start, *parts)) + "/" * is_folder
    return f"/{glob}" if is_anchored and len(start) + len(parts) == 1 else glob


def as_typed(glob: str, folder: str = "") -> str:
    """A glob of the project's top as `checked_include` reads it in `folder`."""
    if folder and glob.startswith(f"{folder}/"):
        return f"./{glob[len(folder) + 1 :]}"
    if folder:
        return "../" * len(folder.split("/")) + glob.removeprefix("/")
    return f".{glob}" if glob.startswith("/") and SPECIAL.search(glob) else glob.removeprefix("/")
