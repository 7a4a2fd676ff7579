"""Options that name something of the project, with completion for shells: a run, a run configuration, a compute
target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def run_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Newest first, as a person looks for them."""
    from holdfast.history.folder import RunFolders
    from holdfast.project.folder import find_project

    ids = RunFolders(find_project(Path.cwd()).state_directory).all_ids()
    return [each for each in ("last", *reversed(ids)) if each.startswith(incomplete)][:50]


def runconfig_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.folder import find_project
    from holdfast.project.runconfig import runconfig_names as names

    return [each for each in names(find_project(Path.cwd()).root) if each.startswith(incomplete)]


def target_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.compute import compute_names
    from holdfast.project.folder import find_project

    return [each for each in compute_names(find_project(Path.cwd()).root) if each.startswith(incomplete)]


def template_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.templates import template_names as names

    return [name for name, _ in names() if name.startswith(incomplete)]


def run_option(required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`-r/--run`; without one the newest run is meant, where that is safe."""
    return click.option(
        "-r",
        "--run",
        "run",
        metavar="RUN",
        required=required,
        default=None if required else "last",
        shell_complete=run_names,
        help="Run id, the end of one, or `last`." + ("" if required else " [default: last]"),
    )


def ignored_target() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`-t` where the original needed it and the run's own record knows better."""
    return click.option("-t", "--target", "ignored_target", hidden=True, expose_value=False)
