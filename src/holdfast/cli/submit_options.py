"""The groups of options of `submit` and `prepare`: each becomes one value of the request."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.command_context import current_context
from holdfast.cli.misplaced import is_after_end
from holdfast.cli.options import DURATION, Decorator, Parsed, run_names
from holdfast.errors import UsageError
from holdfast.project.data_wishes import DataWish, parse_data
from holdfast.project.earlier_wish import EarlierWish, typed_earlier
from holdfast.project.gpu_wishes import WISHES, GpuWish, GpuWishes
from holdfast.project.output_wishes import checked_glob, parse_limit
from holdfast.project.packages_wish import GROUP
from holdfast.workbench.submitting.submit_request import CommandWishes, EnvironmentWishes, GivenWishes
from holdfast.workbench.submitting.variables import typed_variables


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
    """`--extra`, `--group`, `--upgrade`, `--rebuild` and `--ship-packages`; the command gets them as `wishes`."""

    @functools.wraps(command)
    def with_wishes(
        *arguments: Any,
        upgrade: bool,
        rebuild: bool,
        ship_packages: bool,
        extras: tuple[str, ...],
        groups: tuple[str, ...],
        of_run: str | None = None,
        **options: Any,
    ) -> Any:
        parts = (*extras, *(f"{GROUP}{each}" for each in groups))
        wishes = EnvironmentWishes(of_run, upgrade, rebuild, ship_packages, parts)
        return command(*arguments, wishes=wishes, **options)

    anew = click.option("--rebuild", is_flag=True, help="Build the environment anew, with the same packages.")
    newer = click.option("--upgrade", is_flag=True, help="Resolve the packages anew: to the newest that fit.")
    sent = click.option(
        "--ship-packages",
        is_flag=True,
        help="Choose and download packages here and send them: for machines without internet.",
    )
    extra = click.option(
        "--extra",
        "extras",
        multiple=True,
        metavar="NAME",
        help="Add this extra of the project; may be repeated. The same as -d 'pyproject.toml[NAME]'.",
    )
    group = click.option(
        "--group", "groups", multiple=True, metavar="NAME", help="Add this dependency group; may be repeated."
    )
    return extra(group(newer(anew(sent(with_wishes)))))


def command_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How the command line is started; the command gets it as `how`."""

    @functools.wraps(command)
    def with_how(
        *arguments: Any,
        variables: tuple[str, ...],
        parameters: tuple[str, ...],
        copies: int | None,
        tag_output: bool,
        tty: bool,
        **options: Any,
    ) -> Any:
        if tag_output and copies is None:
            raise UsageError("--tag-output is about several processes.", "Add --processes-per-node N.")
        is_program = is_after_end(click.get_current_context())
        typed = typed_variables(variables, current_context())
        how = CommandWishes(is_program, typed, copies, tag_output, tty, parameters)
        return command(*arguments, how=how, **options)

    tagged = click.option(
        "--tag-output", is_flag=True, help="With --processes-per-node: show what all print, each line with its rank."
    )
    several = click.option(
        "--processes-per-node",
        "copies",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Start the command N times, with RANK, WORLD_SIZE, MASTER_ADDR and so on; shows what rank 0 prints.",
    )
    variable = click.option(
        "--env",
        "variables",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Set this variable for the run, or pass on its value from this shell. Values are recorded.",
    )
    return variable(_PARAMETER(several(tagged(_TERMINAL(with_how)))))


_PARAMETER = click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set this parameter of the notebook; may be repeated.",
)
_TERMINAL = click.option("--tty", is_flag=True, help="Give the command a terminal of 80 by 24, without a keyboard.")


def given_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--from` and `--data`; the command gets them as `given`."""

    @functools.wraps(command)
    def with_given(*arguments: Any, earlier: EarlierWish | None, data: tuple[DataWish, ...], **options: Any) -> Any:
        return command(*arguments, given=GivenWishes(earlier, data), **options)

    data = click.option(
        "--data",
        multiple=True,
        type=Parsed("data", parse_data),
        metavar="SOURCE:TARGET",
        help="Link the folder SOURCE to TARGET in the run: sent once per machine, read-only there. May be repeated.",
    )
    before = click.option(
        "--from",
        "earlier",
        type=Parsed("run", typed_earlier),
        metavar="RUN[:PATH]",
        shell_complete=run_names,
        help="Start with the files that RUN wrote, or only with PATH. They are copied on the machine.",
    )
    return before(data(with_given))


def gpu_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a run wants of GPUs; the command gets it as `gpu`."""

    @functools.wraps(command)
    def with_gpu(*arguments: Any, **options: Any) -> Any:
        typed = {each.name: options.pop(each.name) for each in WISHES}
        return command(*arguments, gpu=GpuWishes(**typed), **options)

    found: Callable[..., Any] = with_gpu
    for wish in reversed(WISHES):
        found = _gpu_option(wish)(found)
    return found


def _gpu_option(wish: GpuWish) -> Decorator:
    if wish.parse is None:
        return click.option(wish.option, wish.name, is_flag=True, default=None, help=wish.help)
    kind = Parsed(str(wish.metavar).lower(), wish.parse, wish.offered)
    return click.option(wish.option, wish.name, type=kind, metavar=wish.metavar, help=wish.help)


def outputs_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which outputs come home, and when; the command gets fields of the request as `outputs`."""

    @functools.wraps(command)
    def with_outputs(
        *arguments: Any,
        sync_outputs: float | None,
        no_outputs: bool,
        output_globs: tuple[str, ...],
        outputs_limit: int | None,
        **options: Any,
    ) -> Any:
        _check_outputs(sync_outputs, no_outputs, bool(output_globs))
        wishes = {"output_globs": output_globs, "outputs_limit": outputs_limit}
        outputs = {"sync_outputs": sync_outputs, "fetch_outputs": not no_outputs, **wishes}
        return command(*arguments, outputs=outputs, **options)

    every = click.option(
        "--sync-outputs",
        type=DURATION,
        metavar="EVERY",
        help="Bring outputs home so often while the run is followed, e.g. 10m; at its end always.",
    )
    globs = click.option(
        "--outputs",
        "output_globs",
        multiple=True,
        type=Parsed("glob", checked_glob),
        metavar="GLOB",
        help='Outside outputs/, bring home only this: checkpoints/, "*.pt"; may be repeated. [default: all]',
    )
    limit = click.option(
        "--outputs-limit",
        type=Parsed("size", parse_limit),
        metavar="SIZE",
        help="Outside outputs/, bring home at most this, the smallest files first, or `none`. [default: 1GB]",
    )
    none = click.option(
        "--no-outputs", is_flag=True, help="Leave outputs on the machine; `history download` fetches them."
    )
    return every(globs(limit(none(with_outputs))))


def _check_outputs(sync: float | None, are_left: bool, are_chosen: bool) -> None:
    if are_chosen and are_left:
        raise UsageError("--outputs brings files home, and --no-outputs leaves them.", "Leave out one of them.")
    if sync is not None and are_left:
        raise UsageError("--sync-outputs brings outputs home, and --no-outputs leaves them.", "Leave out one of them.")
    if sync is not None and sync < 1:
        raise UsageError("Outputs are fetched at most once a second.", "Give a longer time: --sync-outputs 30s")
