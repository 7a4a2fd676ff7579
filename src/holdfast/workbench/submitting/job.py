"""What a run starts: the script that the request names, or the run configuration, and its arguments."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import ProjectError, UsageError
from holdfast.frozen import dataclass, replace
from holdfast.project.configuration import Configuration
from holdfast.project.folder import Project
from holdfast.shown_text import one_line
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.submit_request import SubmitRequest


@dataclass(frozen=True)
class Job:
    """What will run: the script by its path in the project, and its arguments."""

    script: str
    words: tuple[str, ...]
    arguments: tuple[str, ...]


def find_job(project: Project, request: SubmitRequest, configuration: Configuration, context: Context) -> Job:
    """The words after `python`, with `$file` replaced. The script must lie inside the project and exist."""
    if request.prepare_only:
        return Job("", (), ())
    vector = configuration.run.argument_vector
    if request.script is None:
        if vector and vector[0] == "$file" and request.arguments:
            named = replace(request, script=request.arguments[0], arguments=request.arguments[1:])
            return find_job(project, named, configuration, context)
        if not vector or vector[0] == "$file":
            raise UsageError(
                "No script is named.",
                "Write it after the options: holdfast submit -c CONFIGURATION train.py, or into `ArgumentVector`.",
            )
        script = _inside(project, vector[0], project.root)
        arguments = (*vector[1:], *request.arguments)
        return Job(script, (script, *arguments), arguments)
    script = _inside(project, request.script, context.directory)
    if "$file" not in vector:  # the vector is for another script: what was typed stands alone
        return Job(script, (script, *request.arguments), request.arguments)
    words = (*(script if word == "$file" else word for word in vector), *request.arguments)
    return Job(script, words, words[vector.index("$file") + 1 :])


def _inside(project: Project, script: str, base: Path) -> str:
    named = script if "\0" in script else os.path.expanduser(script)  # of no account: it raises
    full = Path(os.path.normpath(base / named))
    try:
        relative = full.relative_to(project.root)
    except ValueError:
        raise ProjectError(
            f"The script `{script}` lies outside the project `{project.root}`.",
            "Move it into the project's folder, or submit from the folder that it belongs to.",
        ) from None
    if not os.path.isfile(full):  # Path.is_file raises where a name is too long
        raise _no_script(script, full)
    return relative.as_posix()


def _no_script(script: str, full: Path) -> ProjectError:
    from holdfast.errors import nearest

    if os.path.isdir(full):
        inside = [one_line(f"{script.rstrip('/')}/{name}") for name in _python_files(full)]
        hint = f"Name the script in it: {', '.join(inside[:10])}" if inside else "It has no Python files."
        return ProjectError(f"`{script}` is a folder, not a script.", hint)
    if os.path.lexists(full):
        return ProjectError(f"`{script}` is not a regular file.", "Name a script.")
    names = _python_files(full.parent)
    guess = nearest(full.stem, [name[:-3] for name in names])
    hint = f"That folder has: {', '.join(map(one_line, names[:10]))}" if names else "That folder has no Python files."
    return ProjectError(f"There is no script `{script}`.", f"Did you mean `{one_line(guess)}.py`?" if guess else hint)


def _python_files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.py")) if os.path.isdir(folder) else []
