"""Where the options of `submit` end and the command line of the run begins; options on the wrong side of the script:
those of `submit` after it, which the script gets, and the script's before it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from holdfast.cli import terminal
from holdfast.cli.early_connection import begin_of_command
from holdfast.cli.output_format import CliCommand
from holdfast.errors import HoldfastError, UsageError
from holdfast.project import compute, runconfig
from holdfast.project.configuration import load_configuration
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.folder import Project
from holdfast.project.packages_wish import NONE, PackagesWish
from holdfast.regular_files import text_if_there
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.job import Job, find_job
from holdfast.workbench.submitting.submit_request import SubmitRequest

WHERE = ("run_configuration", "target")
"""Options that say where a run goes. Their one-letter forms are noticed too, before a name that is known here."""
SCRIPTS = (".py", ".runconfig")
_LARGEST_SCRIPT = 16_000_000
_TYPED = "holdfast.typed"
_END = "--"


class SubmitCommand(CliCommand):
    """Remembers what was typed, and says where options of the script go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = typed = tuple(args)
        begin = begin_of_command(args)
        if begin is not None and args[begin] != _END:  # `-m` is Python's option
            args = [*args[:begin], _END, *args[begin:]]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            moved = _after_script(typed, problem.option_name, _options(ctx))
            raise UsageError(
                problem.format_message(),
                f"An option of the script goes after it: {ctx.command_path} {moved}\n"
                f"Those of submit: {ctx.command_path} --help",
            ) from None


def is_after_end(invocation: click.Context) -> bool:
    """Whether the user typed `--` before the command line of the run."""
    typed: tuple[str, ...] = invocation.meta[_TYPED]
    begin = begin_of_command(typed)
    return begin is not None and typed[begin] == _END


class MisplacedOption(NamedTuple):
    """An option of submit among the arguments: the words `begin` to `end` of them."""

    name: str
    begin: int
    end: int


def warn_misplaced(project: Project, request: SubmitRequest, context: Context) -> None:
    """`submit train.py --gpus 1` gives `--gpus 1` to the script: warns if the script does not know it."""
    invocation = click.get_current_context()
    typed: tuple[str, ...] = invocation.meta[_TYPED]
    if is_after_end(invocation):  # `submit -- train.py --gpus 1`: the user has said where the options of submit end
        return
    first = len(typed) - len(invocation.params["arguments"])
    options = _options(invocation)
    if not any(_misplaced(typed[first:], options, project.configuration_folders)):
        return
    job = _job(project, request, context)
    if job is None or not job.script or job.is_notebook:
        return  # options of any program
    first = max(first, len(typed) - len(job.arguments))  # what stands before the script is its launcher's
    begin = begin_of_command(typed) or 0
    before, command, arguments = typed[:begin], typed[begin:first], typed[first:]
    found = list(_misplaced(arguments, options, project.configuration_folders))
    text = text_if_there(project.root / job.script, _LARGEST_SCRIPT)
    found = [each for each in found if not _knows(text, each.name)]
    if not found:
        return
    misplaced = [words for each in found for words in _shown(arguments[each.begin : each.end])]
    taken = {index for each in found for index in range(each.begin, each.end)}
    others = [word for index, word in enumerate(arguments) if index not in taken]
    *listed, last = (f"`{shlex.join(_shown(arguments[each.begin : each.end]))}`" for each in found)
    named = f"{', '.join(listed)} and {last}" if listed else last
    has_place = request.run_configuration is not None or request.target is not None
    is_local = not has_place and any(options[each.name].name in WHERE for each in found)
    verb, them = ("stands", "it") if len(found) == 1 else ("stand", "them")
    local = " and the run is local" if is_local else ""
    terminal.warning(f"{named} {verb} after the script, so the script gets {them}{local}.")
    right = shlex.join((*before, *misplaced, *command, *others))
    terminal.hint(f"Options of submit come first: {invocation.command_path} {right}")
    meant = shlex.join((*before, _END, *command))
    terminal.hint(f"If the script is to get {them}, this is quiet: {invocation.command_path} {meant} …")


def _options(invocation: click.Context) -> Mapping[str, click.Option]:
    """Options of submit by each of their names. Without `--help`, `--verbose` and `--debug`: a script may have them
    without naming them."""
    options = [each for each in invocation.command.params if isinstance(each, click.Option) and each.expose_value]
    return {name: option for option in options for name in option.opts}


def _misplaced(
    arguments: Sequence[str], options: Mapping[str, click.Option], folders: ConfigurationFolders
) -> Iterator[MisplacedOption]:
    """Long names, and one-letter forms of `WHERE`: other letters are too often the script's own."""
    index = 0
    while index < len(arguments) and arguments[index] != _END:
        end = _end_of_option(arguments, index, options)
        name = arguments[index].partition("=")[0]
        if name in options and (name.startswith("--") or _is_place(arguments[index:end], options[name], folders)):
            yield MisplacedOption(name, index, end)
        index = end


def _end_of_option(words: Sequence[str], index: int, options: Mapping[str, click.Option]) -> int:
    """The index after the word, and after its value if it is an option of submit that takes one."""
    option = options.get(words[index])
    return min(len(words), index + (1 if option is None or option.is_flag else 2))


def _is_place(words: Sequence[str], option: click.Option, folders: ConfigurationFolders) -> bool:
    suffix = {"run_configuration": runconfig.SUFFIX, "target": compute.SUFFIX}.get(option.name or "")
    return suffix is not None and len(words) == 2 and folders.has(words[1], suffix)


def _job(project: Project, request: SubmitRequest, context: Context) -> Job | None:
    """None if there is none: submit itself will say why."""
    try:
        configuration = load_configuration(project, request.run_configuration, request.target, PackagesWish(NONE))
        return find_job(project, request, configuration, context)
    except HoldfastError:
        return None


def _knows(text: str, name: str) -> bool:
    """A long name occurs as a whole, a letter in quotes: `-c` alone is part of many words."""
    pattern = rf"{name}(?![\w-])" if name.startswith("--") else rf"""(["']){name}\1"""
    return re.search(pattern, text) is not None


def _shown(words: Sequence[str]) -> list[str]:
    """Without the value of `--secret TOKEN=value`, which must not be repeated."""
    if words[0].partition("=")[0] != "--secret":
        return list(words)
    name = words[1] if len(words) == 2 else words[0].partition("=")[2]
    return ["--secret", name.partition("=")[0]]


def _after_script(typed: Sequence[str], name: str, options: Mapping[str, click.Option]) -> str:
    """The line with the script's options moved after it, if it can be told which word is the script."""
    begin = next((index for index, word in enumerate(typed) if word.partition("=")[0] == name), None)
    scripts = (index for index, word in enumerate(typed) if word.endswith(SCRIPTS) and index > (begin or 0))
    script = next(scripts, None)
    if begin is None or script is None:
        return f"SCRIPT {name} …"
    ours, theirs = list(typed[:begin]), list[str]()
    while begin < script:
        end = min(script, _end_of_option(typed, begin, options))
        is_ours = typed[begin].partition("=")[0] in options
        (ours if is_ours else theirs).extend(typed[begin:end])
        begin = end
    return shlex.join((*ours, typed[script], *theirs, *typed[script + 1 :]))
