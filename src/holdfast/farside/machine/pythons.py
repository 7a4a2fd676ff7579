"""The Pythons of a machine: found by name and place, asked for their version only where their place does not tell."""

import glob
import os
import re
from typing import Dict, List, Optional, Tuple

from holdfast.farside.system.files import names_in
from holdfast.farside.system.nofollow import beginning
from holdfast.farside.system.real_paths import real_path

MOST = 40
MOST_STARTED = 8
QUESTION = "import sys; print('python %d.%d.%d' % sys.version_info[:3])"
_NAME = re.compile(r"python(3(\.\d+)?)?\Z")
_NOTED = rb"^version(?:_info)?\s*=\s*(3\.[0-9]+\.[0-9]+)"
_FULL = re.compile(r"3\.\d+\.\d+")
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/opt/conda/bin", "/opt/conda/envs/*/bin")
_HOME_FOLDERS = (
    ".pyenv/versions/*/bin",
    ".local/bin",
    ".local/share/uv/python/*/bin",
    "*conda3/bin",
    "*conda3/envs/*/bin",
    "*forge*/bin",
    "*forge*/envs/*/bin",
    ".conda/envs/*/bin",
)


def candidates(environment: Dict[str, str]) -> List[str]:
    """Each Python once, under the first name that it was found by. A script that chooses one (pyenv's) is none."""
    folders = [each for each in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
    folders += [
        os.path.join(environment[name], "bin") for name in ("CONDA_PREFIX", "VIRTUAL_ENV") if environment.get(name)
    ]
    home = environment.get("HOME") or os.path.expanduser("~")
    for pattern in list(_FOLDERS) + [os.path.join(home, each) for each in _HOME_FOLDERS]:
        folders += sorted(glob.glob(pattern))
    found: Dict[str, str] = {}
    for folder in folders:
        for name in _names(folder):
            path = os.path.join(folder, name)
            if _NAME.match(name) and _is_program(path):
                found.setdefault(_identity(path), path)
    return list(found.values())[:MOST]


def version_by_place(path: str) -> Optional[str]:
    """The full version where its folder tells it: an environment's note, pyenv's folder, conda's record."""
    prefix = os.path.dirname(os.path.dirname(path))
    try:
        noted = re.search(_NOTED, beginning(os.path.join(prefix, "pyvenv.cfg"), 1 << 16), re.MULTILINE)
        if noted:
            return noted.group(1).decode("ascii")
    except (OSError, ValueError):
        pass
    for record in glob.glob(os.path.join(glob.escape(prefix), "conda-meta", "python-3.*.json")):
        conda = _FULL.search(os.path.basename(record))
        if conda:
            return conda.group(0)
    for name in (os.path.basename(prefix), os.path.basename(os.path.dirname(os.path.dirname(real_path(path))))):
        named = re.match(r"(?:cpython-)?(3\.\d+\.\d+)(?:\Z|-)", name)
        if named:
            return named.group(1)
    return None


def _version_by_name(path: str) -> Optional[str]:
    """`3.11` of a file that is called python3.11."""
    named = re.match(r"python(3\.\d+)", os.path.basename(real_path(path)))
    return named.group(1) if named else None


def split(paths: List[str]) -> Tuple[Dict[str, Optional[str]], List[str]]:
    """The version of each as far as it is known without starting it, and those worth starting."""
    known = {path: version_by_place(path) for path in paths}
    unknown = [path for path in paths if known[path] is None]
    known.update({path: _version_by_name(path) for path in unknown})
    return known, unknown[:MOST_STARTED]


def version_said(text: str) -> Optional[str]:
    """The version in a Python's answer to `QUESTION`."""
    said = re.search(r"^python (\d+\.\d+\.\d+)$", text, re.MULTILINE)
    return said.group(1) if said else None


def _names(folder: str) -> List[str]:
    """`python3` before `python3.11` before `python`: the name that people type."""
    return sorted(names_in(folder), key=lambda name: (name != "python3", not name.startswith("python3"), name))


def _is_program(path: str) -> bool:
    try:
        return os.access(path, os.X_OK) and beginning(path, 2) != b"#!"
    except OSError:
        return False


def _identity(path: str) -> str:
    """Equal for names of the same Python. A virtual environment's Python differs from the one it links to."""
    prefix = os.path.dirname(os.path.dirname(path))
    return prefix if os.path.exists(os.path.join(prefix, "pyvenv.cfg")) else real_path(path)
