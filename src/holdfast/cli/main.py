"""The `holdfast` command: finds the command module, turns every ending into an exit code and words on stderr.

Command modules are imported when one of their commands is used; `holdfast --help` reads the tables below.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.ahead import AHEAD
from holdfast.cli.output import Group
from holdfast.errors import ExitCode, HoldfastError, StorageError
from holdfast.frozen import dataclass

if TYPE_CHECKING:
    from holdfast.workbench.submitting.ahead import Ahead

INTERRUPTED = 128 + 2
"""Ctrl-C where the command has no answer of its own, as shells report it."""
READER_GONE = 128 + 13
"""Whoever read our output (`| head`) has seen enough, as shells report it."""


@dataclass(frozen=True)
class Entry:
    """Where a command is (`module:name`, then names inside that group) and what it does, in one line."""

    place: str
    help: str


GROUPS: Mapping[str, Entry] = {
    "project": Entry("holdfast.cli.project:group", "Create projects, restore a run's code."),
    "experiment": Entry("holdfast.cli.experiment:group", "Submit, follow, cancel and clean runs."),
    "history": Entry("holdfast.cli.history:group", "List, inspect, compare and download runs."),
    "computetarget": Entry("holdfast.cli.computetarget:group", "Attach, list and detach compute targets."),
    "environment": Entry("holdfast.cli.environment:group", "List, check, enter and remove environments."),
    "runconfiguration": Entry("holdfast.cli.runconfiguration:group", "Create, list and delete run configurations."),
    "asset": Entry("holdfast.cli.asset:group", "Download what was promoted from a run."),
    "check": Entry("holdfast.cli.check:command", "Show what this machine has, and what is wrong with it."),
    "completion": Entry("holdfast.cli.completion:command", "Print the completion script for a shell."),
}

SHORT_FORMS: Mapping[str, Entry] = {
    "submit": Entry("holdfast.cli.experiment:group submit", "Short for `experiment submit`."),
    "status": Entry("holdfast.cli.experiment:group status", "Short for `experiment status`."),
    "logs": Entry("holdfast.cli.experiment:group logs", "Short for `experiment logs`."),
    "cancel": Entry("holdfast.cli.experiment:group cancel", "Short for `experiment cancel`."),
}


def main(argv: Sequence[str] | None = None, ahead: Ahead | None = None) -> int:
    """Run one command line and return its exit code. `ahead`: a connection that was begun for it."""
    terminal.provide_streams()
    switches = terminal.Switches(debug=bool(os.environ.get("HOLDFAST_DEBUG")))
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv), switches, ahead)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the one place that turns anything into a code
        try:
            code = _report(problem, switches)
        except BrokenPipeError:  # nobody reads what went wrong
            code = READER_GONE
    finally:
        if ahead is not None:
            ahead.close()
    terminal.drop_unwritten()
    return code


def command_tree() -> Group:
    """The whole command line as a click group. Making it imports no command module."""
    return _LazyGroup(
        "holdfast",
        help="Run a Python script on the compute you have, and bring everything home.",
        epilog="Try: holdfast submit train.py",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


class _LazyGroup(Group):
    """Shows names and helps from the tables; imports a module when one of its commands is asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params.insert(
            0,
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_version,
                help="Show the version.",
            ),
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*GROUPS, *SHORT_FORMS]

    def is_hidden(self, ctx: click.Context, name: str) -> bool:
        return False

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = GROUPS.get(cmd_name) or SHORT_FORMS.get(cmd_name)
        return _load(entry.place) if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, entries in (("Commands", GROUPS), ("Short forms", SHORT_FORMS)):
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        entries = {**GROUPS, **SHORT_FORMS}
        return [CompletionItem(name, help=entries[name].help) for name in entries if name.startswith(incomplete)]


def _load(place: str) -> click.Command:
    import importlib

    module, _, names = place.partition(":")
    first, *inner = names.split()
    command: Any = getattr(importlib.import_module(module), first)
    for name in inner:
        command = command.commands[name]
    if not isinstance(command, click.Command):
        raise TypeError(f"{place} is not a command")
    return command


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from holdfast import __version__

        click.echo(f"holdfast {__version__}")
        context.exit()


def _run(arguments: list[str], switches: terminal.Switches, ahead: Ahead | None) -> int:
    tree = command_tree()
    instruction = os.environ.get("_HOLDFAST_COMPLETE")
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(tree, {}, "holdfast", "_HOLDFAST_COMPLETE", instruction)
    context = tree.make_context("holdfast", arguments, obj=switches)
    context.meta[AHEAD] = ahead
    with context:
        result = tree.invoke(context)
    return int(result) if isinstance(result, int) and not isinstance(result, bool) else 0


def _report(problem: BaseException, switches: terminal.Switches) -> int:
    """Say what happened on stderr, and give the exit code for it."""
    if isinstance(problem, click.exceptions.Exit):
        return problem.exit_code
    if isinstance(problem, (KeyboardInterrupt, click.Abort)):
        terminal.end_of_line()
        return INTERRUPTED
    if _is_broken_pipe(problem) and _reader_is_gone():
        return READER_GONE
    if switches.debug:
        import traceback

        terminal.notice("".join(traceback.format_exception(problem)).rstrip())
    match problem:
        case click.UsageError():
            return _report_usage(problem)
        case click.ClickException():
            terminal.error(problem.format_message())
            return ExitCode.USAGE
        case HoldfastError():
            known = problem
        case OSError() if problem.errno in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EROFS,
            errno.EACCES,
            errno.EPERM,
        ):
            known = _storage_error(problem)
        case _:
            terminal.error(_in_one_line(problem), kind="internal error")
            terminal.hint(
                "This is a defect of Holdfast. To see where: the same with --debug, or with HOLDFAST_DEBUG=1."
            )
            return ExitCode.INTERNAL
    terminal.error(known.message)
    terminal.hint(known.hint)
    return known.exit_code


def _report_usage(problem: click.UsageError) -> int:
    if type(problem).__name__ == "NoArgsIsHelpError":  # a group without a command: its message is the help itself
        terminal.notice(problem.format_message())
        return ExitCode.USAGE
    terminal.error(problem.format_message())
    if problem.ctx is not None:
        terminal.hint(problem.ctx.get_usage())
        terminal.hint(f"More: {problem.ctx.command_path} --help")
    return ExitCode.USAGE


def _storage_error(problem: OSError) -> StorageError:
    place = (
        f" `{terminal.one_line(os.fsdecode(problem.filename))}`" if isinstance(problem.filename, (str, bytes)) else ""
    )
    reason = problem.strerror or str(problem)
    return StorageError(
        f"A file{place} cannot be read or written: {reason}.", "Check the disk's space and the permissions."
    )


def _in_one_line(problem: BaseException) -> str:
    return terminal.one_line(f"{type(problem).__name__}: {problem}".rstrip(": "))


def _is_broken_pipe(problem: BaseException) -> bool:
    """Windows says "invalid argument" of a pipe whose reader is gone (https://bugs.python.org/issue35754)."""
    if sys.platform == "win32" and isinstance(problem, OSError):
        return problem.errno in (errno.EPIPE, errno.EINVAL) and problem.filename is None
    return isinstance(problem, BrokenPipeError)


def _reader_is_gone() -> bool:
    """True if our own stdout or stderr is the broken pipe, and not one to a process that we talk to."""
    if sys.platform == "win32":
        return True  # it cannot be asked; a broken pipe to another process is a HostError by now
    import select

    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
