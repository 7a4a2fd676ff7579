"""A folder to run uv in, out of reach of the folders above.

uv looks in all of them for a workspace and for settings. In a folder that everybody may write to, such as /tmp, those
files can be anybody's.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.farside.system.real_paths import real_path

_END = "[tool.uv]\nmanaged = false\n"
"""A project that uv does not manage belongs to no workspace, and it has settings: uv looks no further up for either."""


@contextlib.contextmanager
def uv_folder(home: Path) -> Iterator[Path]:
    """A new, empty folder for this account alone, removed at the end. It is in `home`, Holdfast's folder on this
    machine, if that is there already and can be written to: a dry run makes none. Raises OSError."""
    place = home if os.access(home, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=".hf-new-uv-", dir=place) as made:
        above = Path(real_path(made))
        (above / "pyproject.toml").write_text(_END, encoding="utf-8")
        (above / "inside").mkdir()
        yield above / "inside"
