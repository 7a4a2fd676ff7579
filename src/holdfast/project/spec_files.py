"""Which kind of file names the packages: a conda file, a requirements file, `pyproject.toml` or `uv.lock`.

A reader is loaded when a file of its kind is read: most projects have one kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.project.problems import Problem

if TYPE_CHECKING:
    from holdfast.project.environment_spec import EnvironmentSpec


def read_environment_spec(root: Path, relative: str) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """What the file asks for, and every problem of it and the files that it names; None when one is an error.

    `relative` is the path in the project, with `/`. Of a `uv.lock` the text is still to be exported
    (`environments.exporting`): that takes the program uv.
    """
    name = relative.rpartition("/")[2].lower()
    if name.endswith((".yml", ".yaml")):
        from holdfast.project.conda_file import read_conda

        return read_conda(root, relative)
    if name == "pyproject.toml":
        from holdfast.project.pyproject import read_pyproject

        return read_pyproject(root, relative)
    if name == "uv.lock":
        from holdfast.project.uv_lock import read_uv_lock

        return read_uv_lock(root, relative)
    if name.endswith((".txt", ".in")):
        from holdfast.project.requirements import read_requirements

        return read_requirements(root, relative)
    message = "packages cannot be read from a file of this name"
    return None, [Problem(relative, 0, "", message, _OTHERS.get(name, "") + _KINDS)]


_KINDS = "Name a conda file (`.yml`), a requirements file (`.txt`, `.in`), `pyproject.toml` or `uv.lock`."

_OTHERS = {
    "poetry.lock": "Write a requirements file from it: poetry export -o requirements.txt. ",
    "pipfile": "Write a requirements file from it: pipenv requirements > requirements.txt. ",
    "pipfile.lock": "Write a requirements file from it: pipenv requirements > requirements.txt. ",
    "pdm.lock": "Write a requirements file from it: pdm export -o requirements.txt. ",
}
