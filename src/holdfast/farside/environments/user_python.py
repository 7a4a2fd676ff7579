"""The user's own Python: where it is, its version and where it finds packages. It is not started: it may be one that a
project names."""

import os
import re
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.environments.installed import lines, packages_of_prefix, site_folders
from holdfast.farside.machine.pythons import version_by_place
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.nofollow import beginning, read_regular
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

_LONGEST = 1 << 20

NAMES = ("python", "python3")


class OwnPython(NamedTuple):
    """`version` in full or as 3.11, empty where its place does not tell; `folders`: where it looks for packages, in its
    order."""

    version: str
    prefix: str
    folders: List[str]


def look_at(python: str) -> OwnPython:
    """By the layouts of venv, conda, pyenv and the distributions."""
    version, prefix, settings = _known(python)
    environment = inherited_environment()
    folders = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(each)]
    bases = [] if settings is None else [prefix]
    if settings is None or settings.get("include-system-site-packages", "").lower() == "true":
        bases.append(os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".local"))
        base = prefix if settings is None else os.path.dirname(settings.get("home", ""))
        bases += ["/usr/local", base] if base == "/usr" else [base]
    for base in bases:
        folders += [each for each in site_folders(base) if os.path.isabs(base) and _is_for(each, version)]
    return OwnPython(version, prefix, [each for each in folders if os.path.isdir(each)])


def beside(python: str) -> Tuple[str, List[str]]:
    """The version of a Python of the user's, and the packages that it finds."""
    version, prefix, _ = _known(python)
    found = set(lines(packages_of_prefix(prefix)))
    if prefix == "/usr":
        found.update(lines(packages_of_prefix("/usr/local")))
    return version, sorted(found, key=str.lower)


def _known(python: str) -> Tuple[str, str, Optional[Dict[str, str]]]:
    """Version, prefix, and what a virtual environment says of itself."""
    prefix, real = os.path.dirname(os.path.dirname(python)), real_path(python)
    settings = _settings(prefix)
    if settings is None:
        prefix = os.path.dirname(os.path.dirname(real))
    noted = (settings or {}).get("version") or (settings or {}).get("version_info")
    named = re.search(r"python(3\.[0-9]+)", os.path.basename(real))
    return noted or version_by_place(real) or (named.group(1) if named else ""), prefix, settings


def is_script(python: str) -> bool:
    """Whether it is one that chooses a Python, as pyenv has it."""
    try:
        return beginning(python, 2) == b"#!"
    except OSError:
        return False


def _settings(prefix: str) -> Optional[Dict[str, str]]:
    """What a virtual environment says of itself; None where this is none."""
    try:
        text = read_regular(os.path.join(prefix, "pyvenv.cfg"), _LONGEST).decode("utf-8", "replace")
    except OSError:
        return None
    rows = [line.partition("=") for line in text.splitlines() if "=" in line]
    return {name.strip().lower(): value.strip() for name, _, value in rows}


def _is_for(folder: str, version: str) -> bool:
    found = re.search(r"/python(3\.[0-9]+)/", folder)
    return found is None or not version or (version + ".").startswith(found.group(1) + ".")


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


def path_of(python: str, location: Optional[str], path: str) -> str:
    """The PATH that finds the programs beside the Python of a run first, where `location` names one. The first Python
    of PATH has its place there."""
    return path if not python or (location or NAMES[0]) in NAMES else os.path.dirname(python) + os.pathsep + path


def _on_path(names: Tuple[str, ...]) -> Optional[str]:
    for name in names:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            candidate = os.path.join(folder, name)
            if not os.path.isabs(folder):
                continue
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
    return None
