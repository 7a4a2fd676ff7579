"""Looks at a command line before click is loaded: one that submits to another machine, or follows a run there, gets its
connection begun first. Anything that is not understood here at once is left to the command itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass, replace

if TYPE_CHECKING:
    from holdfast.workbench.submitting.early_login import Ahead

AHEAD = "holdfast.ahead"
"""The key in click's `meta` of the connection that was begun for a command."""
SUBMITS = (["submit"], ["experiment", "submit"])
FOLLOWS = (["logs"], ["experiment", "logs"])
WITH_VALUE = frozenset(
    (
        "-c",
        "--run-configuration",
        "-t",
        "--target",
        "--time-limit",
        "--grace",
        "--secret",
        "--env",
        "--from",
        "--data",
        "--processes-per-node",
        "-p",
        "--parameter",
        "-d",
        "--conda-file",
        "--project",
        "-s",
        "--spark-file",
        "--sync-outputs",
        "--include",
        "--outputs",
        "--outputs-limit",
        "--environment-of",
        "--extra",
        "--group",
        "-o",
        "--output",
        "--query",
    )
)
BUILDING = ("--upgrade", "--rebuild", "--ship-packages")
_LOOKS = "--dry-run"
"""A flag, too; but nothing is begun for it."""
COMMAND_BEGINS = ("--", "-m", "-u", "-W", "-X", "-O", "-OO", "-B", "-I", "-E", "-S")
"""Words of `submit` that begin the command line of the run, as any word without a dash does: options of Python."""
FLAGS = frozenset(
    ("-a", "--async", "--wait", "--no-outputs", "--tag-output", "--tty", *BUILDING, "--verbose", "--debug")
)


@dataclass(frozen=True)
class TypedTarget:
    """What `-c`, `-t` and `--project` say."""

    run_configuration: str | None
    target: str | None
    project: str | None = None


def begin(arguments: Sequence[str]) -> Ahead | None:
    words = list(arguments)
    place, run = submitted_to(words), followed(words)
    has_place = place is not None and (place.run_configuration, place.target) != (None, None)
    if (not has_place and run is None) or not _has_streams():
        return None
    from holdfast.cli.command_context import current_context
    from holdfast.workbench.submitting.early_login import connect_ahead, connect_to_run

    try:
        if place is not None:
            context = replace(current_context(), named_project=Path(place.project) if place.project else None)
            return connect_ahead(place.run_configuration, place.target, context)
        return connect_to_run(run or "", current_context())
    except HoldfastError:
        return None


def followed(arguments: list[str]) -> str | None:
    """The run that `logs -f` follows; None for any other command line."""
    words = next((arguments[len(each) :] for each in FOLLOWS if arguments[: len(each)] == each), None)
    run, is_following = "last", False
    while words:
        word = words.pop(0)
        if word in ("-r", "--run") and words:
            run = words.pop(0)
        elif word in ("-f", "--follow"):
            is_following = True
        else:
            return None
    return run if is_following else None


def _has_streams() -> bool:
    """If the caller has closed one, the next file that is opened would get its number."""
    try:
        return all(os.fstat(number) for number in (0, 1, 2))
    except OSError:
        return False


def submitted_to(arguments: list[str]) -> TypedTarget | None:
    """None: not a submission, or not one that can be understood without the command itself."""
    words = next((arguments[len(each) :] for each in SUBMITS if arguments[: len(each)] == each), None)
    found: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word in COMMAND_BEGINS:
            named = word if word.endswith(".runconfig") else None
            target, project = found.get("-t", found.get("--target")), found.get("--project")
            return TypedTarget(found.get("-c", found.get("--run-configuration", named)), target, project)
        option, has_value, value = word.partition("=")
        needs_value = takes_value(option)
        if needs_value and option.startswith("--") and has_value:
            found[option] = value
        elif needs_value and not has_value and words:
            found[word] = words.pop(0)
        elif needs_value is not False or has_value:
            return None
    return None


def begin_of_command(words: Sequence[str]) -> int | None:
    """The index of the first word after the options of `submit`; None if that cannot be told."""
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word in COMMAND_BEGINS:
            return index
        option, has_value, _ = word.partition("=")
        needs_value = takes_value(option)
        if needs_value is None and option != _LOOKS:
            return None
        index += 2 if needs_value and not has_value else 1
    return None


def takes_value(option: str) -> bool | None:
    """Whether a value follows an option of `submit`; None for an unknown option."""
    if option in WITH_VALUE or option in FLAGS:
        return option in WITH_VALUE
    from holdfast.project.gpu_wishes import WISHES

    return next((wish.parse is not None for wish in WISHES if wish.option == option), None)
