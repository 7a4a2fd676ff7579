"""The user's own Python: where it is, its version and the packages that it finds. It is not started."""

import os
import re
import sys
from typing import List, Optional, Tuple

from holdfast.farside.environments.installed import lines, packages_of_prefix
from holdfast.farside.system.refusal import Refused


def beside(python: str) -> Tuple[str, List[str]]:
    """The version of a Python of the user's, and the packages that it finds."""
    prefix = os.path.dirname(os.path.dirname(python))
    version, real = "", os.path.realpath(python)
    try:
        with open(os.path.join(prefix, "pyvenv.cfg")) as source:
            settings = dict(line.split("=", 1) for line in source.read().replace(" ", "").splitlines() if "=" in line)
        version = settings.get("version") or settings.get("version_info", "")
    except OSError:
        prefix = os.path.dirname(os.path.dirname(real))
    named = re.search(r"python(3\.[0-9]+)", os.path.basename(real))
    found = set(lines(packages_of_prefix(prefix)))
    if prefix == "/usr":
        found.update(lines(packages_of_prefix("/usr/local")))
    return version or (named.group(1) if named else ""), sorted(found, key=str.lower)


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
