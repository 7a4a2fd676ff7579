"""The environment variables of a run: those of the user, those that Holdfast gives, and the PATH."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.installed_programs import find_program
from holdfast.plan import Hole, Text, text
from holdfast.project.configuration import Configuration
from holdfast.project.own_package import own_package
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context

_OURS = ("HOLDFAST_", "_HOLDFAST_", "AZUREML_")
_SOUND_SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "ACCESS_KEY")


def typed_variables(words: Sequence[str], context: Context) -> tuple[tuple[str, str], ...]:
    """What `--env NAME=VALUE` and `--env NAME` give. Raises UsageError for a name that is none, or that has no value
    in this shell."""
    return tuple(_typed(word, context) for word in words)


def _typed(word: str, context: Context) -> tuple[str, str]:
    name, has_value, value = word.partition("=")
    if not name or "\0" in word or not name.replace("_", "a").isalnum() or name[0].isdigit() or not name.isascii():
        raise UsageError(f"`{name}` cannot be the name of a variable.", "Write it like this: --env NAME=VALUE")
    if name.startswith(_OURS):
        raise UsageError(f"`{name}` is set by Holdfast itself.", "Choose another name.")
    found = value if has_value else context.environment.get(name)
    if found is None:
        raise UsageError(
            f"The variable `{name}` is not set in this shell.", f"Give its value: --env {pasted(name)}=VALUE"
        )
    return name, found


def recorded_secrets(variables: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The names of those that sound like secrets. What `--env` gives is in the run's record."""
    return (name for name, _ in variables if any(each in name.upper() for each in _SOUND_SECRET))


def given_variables(
    configuration: Configuration, project_name: str, run: tuple[str, str], share: Text, projects: Sequence[str] = ()
) -> dict[str, Text]:
    """The user's and Holdfast's own. `run` is its id and its generation; `projects` are folders that the environment's
    plan names."""
    given = {name: text(value) for name, value in configuration.run.environment_variables.items()}
    own_path = configuration.run.environment_variables.get("PYTHONPATH", "")
    return {
        **given,
        "HOLDFAST_RUN_ID": text(run[0]),
        "HOLDFAST_GENERATION": text(run[1]),
        "HOLDFAST_RUN_DIRECTORY": text(Hole.RUN),
        "HOLDFAST_PROJECT": text(project_name),
        "HOLDFAST_TARGET": text(configuration.target.name),
        "HOLDFAST_RUN_CONFIGURATION": text(configuration.run.name),
        "AZUREML_RUN_ID": text(run[0]),
        "AZUREML_NATIVE_SHARE_DIRECTORY": share,
        "PYTHONUNBUFFERED": given.get("PYTHONUNBUFFERED", text("1")),
        "PYTHONFAULTHANDLER": given.get("PYTHONFAULTHANDLER", text("1")),
        "PYTHONIOENCODING": given.get("PYTHONIOENCODING", text("utf-8")),
        "PYTHONPATH": text(
            Hole.FARSIDE,
            ":",  # of the machine that runs it, which is Linux; not of this one
            Hole.FARSIDE,
            "/holdfast/farside/shim",
            f":{own_path}" if own_path else "",
            *_paths_to(projects),
            Hole.PYTHONPATH,
        ),
    }


def project_variables(root: Path, is_this_system: bool) -> dict[str, Text]:
    """By which `farside/shim/sitecustomize.py` finds the project's packages. `is_this_system`: what is installed in
    editable mode there may be the project itself."""
    own = own_package(root)
    found = {"HOLDFAST_PROJECT_DIRECTORY": text(Hole.WORK)}
    if own.name and not own.is_compiled:
        found["HOLDFAST_PROJECT_PACKAGE"] = text(own.name)
    if is_this_system:
        found["HOLDFAST_PROJECT_ORIGINAL"] = text(os.fspath(root))
    return found


def _paths_to(projects: Sequence[str]) -> Iterator[str | Hole]:
    """Folders below the project's top that its files of packages name (`-e ./lib`): as if they were installed."""
    for each in projects:
        if ":" in each or ".." in each.split("/"):
            continue  # no path can say the first, and no folder of the project is the second
        yield from (":", Hole.WORK, f"/{each}", ":", Hole.WORK, f"/{each}/src")


def path_variables(interpreter: Text, is_managed: bool, given: Mapping[str, str], context: Context) -> dict[str, Text]:
    """PATH finds the programs beside the run's Python first, unless the user gives a PATH."""
    found = {"VIRTUAL_ENV": text(Hole.ENVIRONMENT)} if is_managed else {}
    if "PATH" in given:
        return found
    if is_managed:
        return {**found, "PATH": text(Hole.ENVIRONMENT, "/bin:", Hole.PATH)}
    if interpreter.parts == (Hole.PYTHON,):
        return {"PATH": text(Hole.PATH)}  # the far side knows the folder
    python = str(interpreter)
    if find_program(os.path.basename(python), context.environment) == python:
        return {}
    return {"PATH": text(f"{os.path.dirname(python)}:", Hole.PATH)}
