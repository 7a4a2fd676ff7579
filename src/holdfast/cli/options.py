"""Options that several commands share, and what shells complete them with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.command_context import current_project
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

RUN_HELP = "Run id, the beginning or the end of one, or `last`."
COMPLETED = 50
"""So many runs are offered: more are not looked through."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


T = TypeVar("T")


class Parsed(click.ParamType[T]):
    """What a parser makes of a word; `offered` is what shells complete it with."""

    def __init__(self, name: str, parse: Callable[[str], T], offered: Sequence[str] = ()) -> None:
        self.name = name
        self._parse, self._offered = parse, offered

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        parsed: T = self._parse(value) if isinstance(value, str) else value
        return parsed

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(each) for each in self._offered if each.startswith(incomplete)]


def _duration(word: str) -> float:
    from holdfast.project.quantities import parse_duration

    return parse_duration(word)


def _size(word: str) -> int:
    from holdfast.project.quantities import parse_size

    return parse_size(word)


DURATION, SIZE = Parsed("duration", _duration), Parsed("size", _size)


def run_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Newest first, as a person looks for them."""
    from holdfast.history.run_folder import RunFolders

    def names() -> Iterable[str]:
        return ("last", *reversed(RunFolders(current_project().state_directory).all_ids()))

    return _beginning_with(incomplete, names)[:COMPLETED]


def runconfig_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.runconfig import runconfig_names as names

    return _beginning_with(incomplete, lambda: names(current_project().root))


def target_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from holdfast.project.compute import compute_names

    return _beginning_with(incomplete, lambda: compute_names(current_project().root))


def artifact_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The files of the run that stands on the line already."""
    from holdfast.history.run_folder import RunFolders
    from holdfast.workbench.records.artifacts import LOGS, artifacts

    def names() -> Iterable[str]:
        project = current_project()
        run_id = RunFolders(project.state_directory).resolve(context.params.get("run") or "last")
        return (*(each.path for each in artifacts(project, run_id)), *LOGS)

    return _beginning_with(incomplete, names)


def environment_ids(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Those of this machine, by the names of their folders: no machine is asked while the user types."""
    from holdfast.cli.command_context import current_context

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
    """`-r/--run`; without one the newest run is meant where that is safe, or what the command finds itself, which
    `otherwise` says in words."""
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


def environment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--environment-of`, `--upgrade` and `--rebuild` of commands that run; the command gets them as `wishes`."""
    of_run = click.option(
        "--environment-of",
        "of_run",
        metavar="RUN",
        shell_complete=run_names,
        help="Run in exactly the environment of this run, whatever the files of packages say now.",
    )
    return of_run(build_options(command))


def build_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--upgrade`, `--rebuild` and `--ship-packages`; the command gets them as `wishes`."""

    @functools.wraps(command)
    def with_wishes(
        *arguments: Any,
        upgrade: bool,
        rebuild: bool,
        ship_packages: bool,
        of_run: str | None = None,
        **options: Any,
    ) -> Any:
        from holdfast.workbench.submitting.run_plan import EnvironmentWishes

        return command(*arguments, wishes=EnvironmentWishes(of_run, upgrade, rebuild, ship_packages), **options)

    anew = click.option("--rebuild", is_flag=True, help="Build the environment anew, with the same packages.")
    newer = click.option("--upgrade", is_flag=True, help="Resolve the packages anew: to the newest that fit.")
    sent = click.option(
        "--ship-packages",
        is_flag=True,
        help="Choose and download packages here and send them: for machines without internet.",
    )
    return newer(anew(sent(with_wishes)))


def target_option(help: str, required: bool = False) -> Decorator:  # noqa: A002 - as click calls it
    return click.option("-t", "--target", metavar="NAME", required=required, shell_complete=target_names, help=help)


run_configuration_option = click.option(
    "-c",
    "--run-configuration",
    metavar="NAME",
    shell_complete=runconfig_names,
    help="Run configuration: the stem of a .runconfig. [default: local]",
)
other_target = target_option("Compute target, instead of the one in the run configuration.")
environment_target = target_option("Compute target whose machine is meant. [default: this machine]")


def conda_file_option(what: str) -> Decorator:
    return click.option(
        "-d",
        "--conda-file",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help=f"{what}, instead of the run configuration's.",
    )


def configuration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-c`, `-t` and `-d` of commands that look at an environment and run nothing."""
    return run_configuration_option(other_target(conda_file_option("File of packages")(command)))


def download_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-d/--directory` and `--overwrite`, of commands that put files somewhere."""
    directory = click.option(
        "-d",
        "--directory",
        required=True,
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder to put it in.",
    )
    overwrite = click.option("--overwrite", is_flag=True, help="Replace files that are there.")
    return directory(overwrite(command))


def target_of_run() -> Decorator:
    """`-t` where a run that was submitted elsewhere is found by it; the record of one that is here knows better."""
    return target_option("Where to find a run that was submitted from another machine. [default: as its record says]")


def ignored_target() -> Decorator:
    """`-t` where the original needed it and the run's own record knows better."""
    return click.option("-t", "--target", "ignored_target", hidden=True, expose_value=False)


def _beginning_with(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return [each for each in names() if each.startswith(incomplete)]
    except HoldfastError:
        return []  # completing a word is no place to complain
