"""Options that several commands share, and what shells complete them with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.command_context import current_context, current_project
from holdfast.errors import HoldfastError, UsageError
from holdfast.history.run_folder import RunFolders
from holdfast.project.quantities import parse_duration, parse_size

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from holdfast.project.folder import Project

RUN_HELP = "Run id, the beginning or the end of one, or `last`."
COMPLETED = 50
"""Runs that shells offer at most."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


T = TypeVar("T")


class Parsed(click.ParamType[T]):
    """A word as `parse` reads it; shells complete it with `offered`."""

    def __init__(self, name: str, parse: Callable[[str], T], offered: Sequence[str] = ()) -> None:
        self.name = name
        self._parse, self._offered = parse, offered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        parsed: T = self._parse(value) if isinstance(value, str) else value
        return parsed

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(each) for each in self._offered if each.startswith(incomplete)]


DURATION, SIZE = Parsed("duration", parse_duration), Parsed("size", parse_size)


def _project_of(context: click.Context) -> Project:
    """While a word is completed, no context is the current one."""
    with context.scope(cleanup=False):
        return current_project()


def run_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Newest first, as a person looks for them."""

    def names() -> Iterable[str]:
        return ("last", *reversed(RunFolders(_project_of(context).state_directory).all_ids()))

    return _beginning_with(incomplete, names)[:COMPLETED]


def runconfig_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.runconfig import runconfig_names as names

    return _beginning_with(incomplete, lambda: names(_project_of(context).configuration_folders))


def target_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.compute import compute_names

    return _beginning_with(incomplete, lambda: compute_names(_project_of(context).configuration_folders))


def artifact_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The files of the run that is named on the line."""
    from holdfast.workbench.records.artifacts import LOGS, artifacts

    def names() -> Iterable[str]:
        project = _project_of(context)
        named = [context.params.get("run"), *(context.params.get("words") or ()), "last"]
        run_id = RunFolders(project.state_directory).resolve(next(each for each in named if each))
        return (*(each.path for each in artifacts(project, run_id)), *LOGS)

    return _beginning_with(incomplete, names)


def run_or_artifact_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The first word is a run, unless -r names it."""
    is_named = context.params.get("run") or context.params.get("words")
    return (artifact_names if is_named else run_names)(context, parameter, incomplete)


def environment_ids(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Environments of this machine, by their folders: other machines are not asked while the user types."""

    def names() -> Iterable[str]:
        return sorted(mark.parent.name for mark in (current_context().home / "environments").glob("*/.complete"))

    return _beginning_with(incomplete, names)


def target_types(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.compute import TYPES

    return _beginning_with(incomplete, lambda: TYPES)


def template_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.templates import template_names as names

    return _beginning_with(incomplete, lambda: [name for name, _ in names()])


def run_option(required: bool = True, otherwise: str = "last") -> Decorator:
    """`-r/--run`. If it is not required, the newest run is meant, or what `otherwise` says in words."""
    is_last = not required and otherwise == "last"
    default: dict[str, Any] = {"default": "last"} if is_last else {}  # click takes even an explicit None for a value
    return click.option(
        "-r",
        "--run",
        "run",
        metavar="RUN",
        required=required,
        shell_complete=run_names,
        help=RUN_HELP + ("" if required else f" [default: {otherwise}]"),
        **default,
    )


def run_configuration_option(
    help: str = "Run configuration: the stem of a .runconfig. [default: local]",  # noqa: A002 - as click calls it
) -> Decorator:
    return click.option("-c", "--run-configuration", metavar="NAME", shell_complete=runconfig_names, help=help)


def target_option(help: str, required: bool = False, metavar: str = "NAME") -> Decorator:  # noqa: A002
    return click.option("-t", "--target", metavar=metavar, required=required, shell_complete=target_names, help=help)


def configuration_options(packages: str = "File of packages") -> Decorator:
    """`-c`, `-t` and `-d`, of commands that run something or look at what it would run in."""
    conda_file = click.option(
        "-d",
        "--conda-file",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help=f"{packages}, instead of what is found; `pyproject.toml[EXTRA]`; `none` for the target's own Python.",
    )
    target = target_option("Compute target, instead of the one in the run configuration.")
    return lambda command: run_configuration_option()(target(conda_file(command)))


_environment_target = target_option("Compute target whose machine is meant. [default: this machine]")
address_option = click.option(
    "--address", metavar="[USER@]HOST[:PORT]", help="The machine's address, instead of a compute target."
)


def environment_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-t` and `--address`, of commands about the environments of a machine."""
    return _environment_target(address_option(command))


def named_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """`NAME` or `-n NAME`, of commands about one compute target, which get it as `name`."""

    @functools.wraps(command)
    def with_name(*arguments: Any, target: str | None, name: str | None, **options: Any) -> Any:
        wanted = target or name
        if wanted is None or (target and name and target != name):
            raise UsageError("Say which compute target, once.", "holdfast computetarget list")
        return command(*arguments, name=wanted, **options)

    typed = click.argument("target", required=False, metavar="NAME", shell_complete=target_names)
    named = click.option("-n", "--name", metavar="NAME", shell_complete=target_names, help="The same as NAME.")
    return typed(named(with_name))


def download_options(otherwise: str = "") -> Decorator:
    """`-d/--directory` and `--overwrite`, of commands that put files somewhere. `otherwise`: where without the option,
    in words; empty where it has to be given."""
    directory = click.option(
        "-d",
        "--directory",
        required=not otherwise,
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder to put it in." + (f" [default: {otherwise}]" if otherwise else ""),
    )
    overwrite = click.option("--overwrite", is_flag=True, help="Replace files that are there.")
    return lambda command: directory(overwrite(command))


def target_of_run() -> Decorator:
    """`-t`, to find a run that was submitted elsewhere; a record that is here knows its target."""
    return target_option("Where to find a run that was submitted from another machine. [default: as its record says]")


def ignored_target() -> Decorator:
    """`-t`, which the original needed; the run's record knows its target."""
    return click.option("-t", "--target", "ignored_target", hidden=True, expose_value=False)


def _beginning_with(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return [each for each in names() if each.startswith(incomplete)]
    except HoldfastError:
        return []  # while a word is completed nothing is reported
