"""The Python that a run on this host uses where the user's own is wanted: `pythonLocation`, or the active one."""

import os
import sys
from typing import Optional, Tuple

from holdfast.farside.refusal import Refused

NAMES = ("python", "python3")


def find_python(location: Optional[str], work: str) -> str:
    """An absolute path. `location` None: `python` of this login, then `python3`; a name is looked for on PATH; a
    relative path is meant from the run's files."""
    if location is None:
        return _on_path(NAMES) or sys.executable
    path = os.path.expanduser(location)
    if os.sep not in path:
        found = _on_path(NAMES if path in NAMES else (path,))
        if found is None:
            raise Refused("cannot-start", "there is no Python `%s` on the PATH of this login" % location)
        return found
    full = os.path.join(work, path)
    if os.path.isfile(full) and not os.access(full, os.X_OK):
        raise Refused("cannot-start", "`%s` may not be executed: its mode forbids it, or a noexec mount" % full)
    if not os.path.isfile(full):
        raise Refused("cannot-start", "there is no Python at `%s`" % full)
    return full


def _on_path(names: Tuple[str, ...]) -> Optional[str]:
    for name in names:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            candidate = os.path.abspath(os.path.join(folder or ".", name))
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
    return None
