"""Environments of Python packages: a virtual environment made by uv, named by what goes into it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Mapping

from holdfast.errors import ConfigurationError, NotAvailable
from holdfast.model import Command, EnvironmentPlan, Hole, Text, text
from holdfast.project.conda import CondaDependencies
from holdfast.project.problems import Problem

_FORMAT = 1


def plan_environment(spec: CondaDependencies, file: str, python: str, uv: str) -> EnvironmentPlan:
    """`python` is the active interpreter, for a spec that pins none; `uv` is the program that builds. Pure."""
    _refuse_what_cannot_be_built(spec, file)
    wanted = spec.python or os.path.realpath(python)
    arguments = [part for requirement in spec.pip for part in _arguments(requirement.text)]
    content = [_FORMAT, wanted, sorted(requirement.text for requirement in spec.pip), platform.machine()]
    name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    steps = [_command(uv, "venv", "--quiet", "--no-project", "--python", wanted, text(Hole.ENVIRONMENT))]
    if arguments:
        interpreter = text(Hole.ENVIRONMENT, "/bin/python")
        steps.append(_command(uv, "pip", "install", "--python", interpreter, *arguments))
    summary = ", ".join(requirement.text for requirement in spec.pip) or "no packages"
    return EnvironmentPlan(name, tuple(steps), f"Python {spec.python or 'as active'}: {summary}")


def _command(*words: str | Text) -> Command:
    argv = tuple(word if isinstance(word, Text) else text(word) for word in words)
    return Command(argv, _BUILD_ENVIRONMENT, text(Hole.HOME))


_BUILD_ENVIRONMENT: Mapping[str, Text] = {
    # One parent folder for cache and environments: files are hard links, not copies.
    "UV_CACHE_DIR": text(Hole.HOME, "/cache/uv"),
    "UV_PYTHON_INSTALL_DIR": text(Hole.HOME, "/pythons"),
    "UV_COLOR": text("never"),
}


def _arguments(line: str) -> list[str]:
    """A requirement is one argument whatever it contains; an option line is several."""
    return shlex.split(line) if line.startswith("-") else [line]


def _refuse_what_cannot_be_built(spec: CondaDependencies, file: str) -> None:
    problems = [
        Problem(
            file,
            requirement.line,
            "dependencies",
            f"`{requirement.text}` is a conda package, and this version builds Python packages only",
            "Move it below `pip:` under the name that the Python package index has for it.",
            "error",
        )
        for requirement in spec.conda
    ]
    if problems:
        raise ConfigurationError(problems)
    for requirement in spec.pip:
        first = requirement.text.split()[0] if requirement.text.split() else ""
        if first in ("-r", "--requirement", "-e", "--editable", "-c", "--constraint") or first.startswith((".", "/")):
            raise NotAvailable(
                f"`{requirement.text}` ({file}:{requirement.line}) names a file; this version cannot build from it.",
                "List the packages themselves below `pip:`.",
            )
