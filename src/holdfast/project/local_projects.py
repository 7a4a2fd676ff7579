"""Folders of the project that lines ask for (`-e .`, `./lib[extra]`), and projects with a `setup.py`: the packages that
they depend on are wanted, and their own are imported from where they lie."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from pathlib import Path

from holdfast.frozen import replace
from holdfast.project.credentials import Credentials
from holdfast.project.environment_spec import EnvironmentSpec, LocalProject, Requirement, is_option, parse_python
from holdfast.project.packages_wish import SETUP_FILES
from holdfast.project.problems import Mistake, Problem, errors_in
from holdfast.project.project_parts import PartLine, ProjectParts
from holdfast.project.pyproject import is_project, read_pyproject
from holdfast.project.requirements import RequirementLines, RequirementSource, read_python_version
from holdfast.project.setup_files import SetupWishes, read_wishes

_MOST = 200
"""Folders that are read: each line may name another one, or other parts of it."""
Read = tuple[EnvironmentSpec | None, list[Problem]]


def with_projects(root: Path, spec: EnvironmentSpec, problems: list[Problem]) -> Read:
    """The spec with what the folders that it names depend on, and those that these name."""
    known: dict[str, LocalProject] = {}
    waiting = _by_folder(spec.projects)
    reads = 0
    while waiting:
        each = waiting.pop(0)
        before = known.get(each.folder)
        if before is not None and set(each.parts) <= set(before.parts):
            continue
        parts = (*before.parts, *each.parts) if before is not None else each.parts
        known[each.folder] = replace(each, parts=tuple(dict.fromkeys(parts)))
        reads += 1
        if reads > _MOST:
            message = f"more than {_MOST} folders are asked for"
            return None, [
                *problems,
                Problem(each.file, each.line, "", message, "Name the packages that they depend on."),
            ]
        found, more = read_project(root, known[each.folder])
        problems = [*problems, *more]
        if found is None:
            return None, problems
        waiting += _by_folder(found.projects)
        if not spec.locked:  # then every package is listed, with its hashes
            spec = _merged(spec, found)
    return replace(spec, projects=tuple(known.values())), problems


def _by_folder(projects: Iterable[LocalProject]) -> list[LocalProject]:
    """Each folder once, with all parts of it that are wanted."""
    parts: dict[str, dict[str, None]] = {}
    first: dict[str, LocalProject] = {}
    for each in projects:
        first.setdefault(each.folder, each)
        parts.setdefault(each.folder, {}).update(dict.fromkeys(each.parts))
    return [replace(each, parts=tuple(parts[folder])) for folder, each in first.items()]


def read_project(root: Path, wanted: LocalProject) -> Read:
    """What a folder's project depends on."""
    pyproject = posixpath.join(wanted.folder, "pyproject.toml")
    if is_project(root, pyproject):
        return read_pyproject(root, pyproject, wanted.parts)
    for name in SETUP_FILES:
        if os.path.isfile(root / wanted.folder / name):
            return read_setup(root, posixpath.join(wanted.folder, name), wanted.parts)
    shown = wanted.folder or "."
    message = f"`{shown}` is no Python project: it has neither `pyproject.toml` with `[project]` nor `setup.py`"
    return None, [Problem(wanted.file, wanted.line, "", message, "Correct the path, or remove the line.")]


def read_setup(root: Path, relative: str, parts: Iterable[str]) -> Read:
    """What a `setup.cfg` or `setup.py` asks for, whichever of the two is named; its build says what it does not."""
    folder, wanted = posixpath.dirname(relative), tuple(parts)
    if not os.path.isfile(root / relative):
        return None, [Problem(relative, 0, "", "there is no such file", "Correct the name.")]
    lines = RequirementLines(root)
    try:
        wishes = read_wishes(root / folder)
    except ValueError as error:
        return None, [Problem(relative, 0, "", f"cannot be read: {error}", "Correct the file.")]
    if wishes.is_whole:
        _take(lines, wishes, relative, wanted)
    else:
        lines.take_built(folder, wanted, RequirementSource(relative))
    pinned, problems = read_python_version(root, folder)
    python = pinned.text if pinned else wishes.python.strip().rstrip(",")
    written = pinned or (Requirement(python, 0, relative) if python else None)
    problems = lines.problems + problems
    spec = lines.spec(relative, parse_python(python) if python else None, written)
    return (None if errors_in(problems) else spec), problems


def _take(lines: RequirementLines, wishes: SetupWishes, relative: str, parts: tuple[str, ...]) -> None:
    for file in wishes.files:
        lines.take_file(posixpath.join(posixpath.dirname(relative), file))
    more = ProjectParts(wishes.name, wishes.extras, {}).lines(parts) if parts else ()
    if isinstance(more, Mistake):
        lines.problem(RequirementSource(relative), more.message, more.remedy)
        return
    for each in (*(PartLine(text, "install_requires") for text in wishes.requires), *more):
        lines.take(each.text, RequirementSource(relative, 0, each.key))


def _merged(spec: EnvironmentSpec, more: EnvironmentSpec) -> EnvironmentSpec:
    """Options that say where packages come from are those of the first that names any."""
    known = {each.text for each in spec.pip}
    has_index = any(is_option(each) for each in spec.pip)
    new = [each for each in more.pip if each.text not in known and not (has_index and is_option(each))]
    return replace(
        spec,
        python=spec.python or more.python,
        python_from=spec.python_from or more.python_from,
        pip=(*spec.pip, *new),
        constraints=(*spec.constraints, *more.constraints),
        files=tuple(dict.fromkeys((*spec.files, *more.files))),
        credentials=Credentials({**more.credentials, **spec.credentials}),
    )
