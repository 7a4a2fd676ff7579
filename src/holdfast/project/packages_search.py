"""The files that say which packages a run needs: those that a repository has anyway, which of them the user chose where
there are several, and what such a file asks for."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.project.compute import CONTAINER_TYPES, ComputeTarget
from holdfast.project.conda_file import read_conda
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.folder import Project
from holdfast.project.packages_wish import NONE, SETUP_FILES, PackagesChoice, PackagesWish, split_parts, with_parts
from holdfast.project.problems import Problem
from holdfast.project.pyproject import parse_toml, read_pyproject, read_uv_lock
from holdfast.project.requirements import read_requirements
from holdfast.project.runconfig import CONDA_FILE, RunConfiguration
from holdfast.regular_files import NotJson, read_json, text_if_there
from holdfast.whole_files import storage_error, write_whole

MEMORY = "packages.json"
"""In the project's `.holdfast`."""
CONDA_FILES = ("environment.yml", "environment.yaml", "conda.yaml", "conda.yml")
_LARGEST = 1_000_000
_MOST_CHOICES = 50


def choose_packages(
    project: Project, run: RunConfiguration, target: ComputeTarget, wish: PackagesWish
) -> PackagesChoice | None:
    """None: the target's own Python is used as it is. Raises UsageError for parts that no file has."""
    if wish.file == NONE:
        _refuse_parts(wish, "-d none takes packages from no file.")
        return None
    if wish.file is not None:
        return PackagesChoice(with_parts(wish.file, wish.parts))
    is_usual = run.conda_dependencies_file == CONDA_FILE
    if not is_usual or (os.path.lexists(project.root / CONDA_FILE) and not wish.parts):
        return PackagesChoice(with_parts(run.conda_dependencies_file, wish.parts))
    found = find_packages(project.root, wish)
    if found:
        return _one_of(project, found, wish.parts)
    _refuse_parts(wish, "There is no uv.lock, pyproject.toml, setup.cfg or setup.py.")
    if target.user_managed_environment is not False:
        return None
    return PackagesChoice("" if target.type in CONTAINER_TYPES else CONDA_FILE)


def find_packages(root: Path, wish: PackagesWish) -> tuple[str, ...]:
    """Those of the nearest folder that has any, the one to take first."""
    for folder in dict.fromkeys((*_up(wish.folder), *_up(posixpath.dirname(wish.script)))):
        found = tuple(posixpath.join(folder, name) for name in _files_in(root / folder, bool(wish.parts)))
        if found:
            return found
    return ()


def remember(project: Project, among: Sequence[str], file: str) -> None:
    """Note which of these files the user chose, in the project's `.holdfast`, which is there."""
    kept = {**_remembered(project), tuple(sorted(among)): file}
    content = {"format": 1, "chosen": [[list(key), value] for key, value in list(kept.items())[-_MOST_CHOICES:]]}
    try:
        write_whole(project.state_directory / MEMORY, json.dumps(content, indent=1).encode())
    except OSError as error:
        raise storage_error(error, "note which file of packages you chose", project.state_directory / MEMORY) from error


def read_chosen(root: Path, choice: PackagesChoice) -> tuple[EnvironmentSpec | None, list[Problem]]:
    return read_environment_spec(root, choice.written) if choice.written else (EnvironmentSpec(), [])


def read_environment_spec(root: Path, written: str) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """What the file asks for, and every problem of it and the files that it names; None when one is an error.

    `written` is the path in the project, with `/`, and with parts behind it. Of a `uv.lock` the text is still to be
    exported, by the program uv (`environments.uv_export`).
    """
    relative, parts = (written, ()) if os.path.lexists(root / written) else split_parts(written)
    name = posixpath.basename(relative).lower()
    if name.endswith((".yml", ".yaml")):
        return _with_projects(root, *read_conda(root, relative))
    if name == "uv.lock":
        return read_uv_lock(root, relative, parts)
    if name == "pyproject.toml":
        return _with_projects(root, *read_pyproject(root, relative, parts))
    if name in SETUP_FILES:
        from holdfast.project.local_projects import read_setup

        return _with_projects(root, *read_setup(root, relative, parts))
    if name.endswith((".txt", ".in")):
        return _with_projects(root, *read_requirements(root, relative))
    message = "packages cannot be read from a file of this name"
    return None, [Problem(relative, 0, "", message, _OTHERS.get(name, "") + _KINDS)]


def _with_projects(
    root: Path, spec: EnvironmentSpec | None, problems: list[Problem]
) -> tuple[EnvironmentSpec | None, list[Problem]]:
    if spec is None or not spec.projects:
        return spec, problems
    from holdfast.project.local_projects import with_projects

    return with_projects(root, spec, problems)


_KINDS = (
    "Name a conda file (`.yml`), a requirements file (`.txt`, `.in`), `pyproject.toml`, `uv.lock`, `setup.cfg` or "
    "`setup.py`."
)

_OTHERS = {
    "poetry.lock": "Write a requirements file from it: poetry export -o requirements.txt. ",
    "pipfile": "Write a requirements file from it: pipenv requirements > requirements.txt. ",
    "pipfile.lock": "Write a requirements file from it: pipenv requirements > requirements.txt. ",
    "pdm.lock": "Write a requirements file from it: pdm export -o requirements.txt. ",
}


def _refuse_parts(wish: PackagesWish, why: str) -> None:
    if wish.parts:
        raise UsageError(
            f"--extra and --group name parts of a project's packages. {why}", "Leave them out, or: -d FILE"
        )


def _one_of(project: Project, found: tuple[str, ...], parts: tuple[str, ...]) -> PackagesChoice | None:
    known = _remembered(project).get(tuple(sorted(found))) if len(found) > 1 else None
    if known == NONE and not parts:
        return None
    file = known if known in found and known is not None else found[0]
    others = tuple(each for each in found if each != file)
    return PackagesChoice(with_parts(file, parts), True, others, file == known)


def _remembered(project: Project) -> dict[tuple[str, ...], str]:
    """By the files that there were to choose from. Empty where nothing of use is noted."""
    try:
        rows = read_json(project.state_directory / MEMORY, _LARGEST, follows_link=False)["chosen"]
        return {tuple(str(each) for each in among): str(file) for among, file in rows}
    except (OSError, NotJson, LookupError, TypeError, ValueError):
        return {}


def _up(folder: str) -> Iterator[str]:
    """The folder, and each one above it up to the project's top."""
    while folder not in ("", "."):
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _files_in(folder: Path, needs_parts: bool) -> Iterator[str]:
    """Files of tools alone, and empty ones, do not count; nor does a `setup.py` beside any other."""
    found: list[str] = []
    if _is_project(_text(folder / "pyproject.toml"), needs_parts):
        found.append("uv.lock" if os.path.isfile(folder / "uv.lock") else "pyproject.toml")
    if not needs_parts:
        found += ["requirements.txt"] if re.search(r"^[ \t]*[^#\s]", _text(folder / "requirements.txt"), re.M) else []
        found += [name for name in CONDA_FILES if re.search(r"^dependencies[ \t]*:", _text(folder / name), re.M)][:1]
    if not found:
        marks = ("install_requires", "extras_require")
        found += [name for name in SETUP_FILES if any(mark in _text(folder / name) for mark in marks)][:1]
    yield from found


def _is_project(text: str, needs_parts: bool) -> bool:
    """Whether it is a `pyproject.toml` that names packages, or that says that the project's build does."""
    if "dependencies" not in text and "dependency-groups" not in text:
        return False
    try:
        content = parse_toml(text)
    except ValueError:
        return "[project]" in text  # whoever reads it says what is wrong
    project = _table(content.get("project"))
    groups, poetry = _table(content.get("dependency-groups")), _table(_table(content.get("tool")).get("poetry"))
    names = bool(project.get("dependencies")) or "dependencies" in _list(project.get("dynamic"))
    has_parts = bool(project.get("optional-dependencies")) or bool(groups)
    return names or (needs_parts and has_parts) or bool(poetry.get("dependencies"))


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(path: Path) -> str:
    return text_if_there(path, _LARGEST)
