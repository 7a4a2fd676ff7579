"""The `holdfast` command: finds the command module, turns every ending into an exit code and words on stderr.

Command modules are imported when one of their commands is used; `holdfast --help` reads the tables below.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast import __version__
from holdfast.cli import terminal
from holdfast.cli.early_connection import AHEAD
from holdfast.cli.output_format import CliCommand, Group
from holdfast.errors import ExitCode
from holdfast.frozen import dataclass, field, replace
from holdfast.presenting.lines import error_line

if TYPE_CHECKING:
    from holdfast.workbench.submitting.early_login import Ahead

INTERRUPTED = 128 + 2
"""Ctrl-C, if the command has no answer of its own, as shells report it."""
READER_GONE = 128 + 13
"""The reader of our output (`| head`) is gone, as shells report it."""


@dataclass(frozen=True)
class CommandEntry:
    """A command (`place`: `module:name`) or a group, with one line of help; `about` is a group's longer help."""

    help: str
    place: str = ""
    commands: Mapping[str, CommandEntry] = field(default_factory=dict)
    about: str = ""


GROUPS: Mapping[str, CommandEntry] = {
    "project": CommandEntry(
        "Create projects, restore a run's code.",
        commands={
            "create": CommandEntry("Create a project in a new folder.", "project:create_command"),
            "restore": CommandEntry("Write the files of a run's snapshot to a folder.", "project:restore_command"),
            "trust": CommandEntry("Take over runs that came with a copy.", "project:trust_command"),
            "sample": CommandEntry(
                "What projects can be made from.",
                commands={"list": CommandEntry("List the templates.", "project:sample_list_command")},
            ),
        },
    ),
    "experiment": CommandEntry(
        "Submit, follow, cancel and clean runs.",
        commands={
            "submit": CommandEntry("Run a script on a compute target.", "submit_command:submit_command"),
            "prepare": CommandEntry("Build a run's environment, and run nothing.", "submit_command:prepare_command"),
            "status": CommandEntry("Show where a run is, after asking its machine.", "experiment:status_command"),
            "logs": CommandEntry("Print the output of a run, from its first byte.", "experiment:logs_command"),
            "cancel": CommandEntry("End a run and every process of it.", "experiment:cancel_command"),
            "stacks": CommandEntry("Show what a run's Python processes are doing now.", "experiment:stacks_command"),
            "shell": CommandEntry("Open a shell where a run runs.", "shell_command:shell_command"),
            "forward": CommandEntry("Bring a port of a run's machine to this one.", "shell_command:forward_command"),
            "clean": CommandEntry("Remove what ended runs left on their machine.", "upkeep:clean_command"),
            "diagnostics": CommandEntry("Write a zip for a bug report; no secrets.", "upkeep:diagnostics_command"),
        },
    ),
    "history": CommandEntry(
        "List, inspect, compare and download runs.",
        commands={
            "list": CommandEntry("List the runs of this project, newest first.", "history:list_command"),
            "last": CommandEntry("Show the newest run.", "info_command:last_command"),
            "info": CommandEntry("Show everything that is known about a run.", "info_command:info_command"),
            "compare": CommandEntry("Show what differs between two runs.", "info_command:compare_command"),
            "download": CommandEntry("Copy the files of a run to a folder.", "download_command:download_command"),
            "promote": CommandEntry("Name a file of a run, in a link to commit.", "download_command:promote_command"),
            "import": CommandEntry("Bring home runs that other machines submitted.", "download_command:import_command"),
            "rebuild": CommandEntry("Make the index anew from the runs' folders.", "history:rebuild_command"),
        },
    ),
    "computetarget": CommandEntry(
        "Attach, list and detach compute targets.",
        commands={
            "attach": CommandEntry("Attach a machine as a compute target.", "computetarget:attach_command"),
            "list": CommandEntry("List the compute targets.", "project:list_targets_command"),
            "show": CommandEntry("Show a target's file, and its machine's disk use.", "computetarget:show_command"),
            "check": CommandEntry(
                "Look at a target's machine again, and write nothing.", "machine_commands:check_command"
            ),
            "gpus": CommandEntry("Show who uses the GPUs of a machine.", "machine_commands:gpus_command"),
            "detach": CommandEntry("Remove a target; past runs stay in the history.", "computetarget:detach_command"),
        },
        about="Attach, list, check and detach compute targets.",
    ),
    "environment": CommandEntry(
        "List, check, enter and remove environments.",
        commands={
            "list": CommandEntry("List a machine's environments, last used first.", "environment:list_command"),
            "show": CommandEntry("Show one environment: packages, source, users.", "environment:show_command"),
            "remove": CommandEntry("Remove environments from a machine.", "environment:remove_command"),
            "shell": CommandEntry(
                "Open a shell, or run a command, in an environment.", "shell_command:environment_shell_command"
            ),
            "check": CommandEntry(
                "Find packages that will not work on a machine.", "machine_commands:check_environment_command"
            ),
        },
        about="List, show, check, enter and remove the environments that runs are given.",
    ),
    "data": CommandEntry(
        "List and remove data that machines keep for runs.",
        commands={
            "list": CommandEntry("List a machine's data, last used first.", "data:list_command"),
            "remove": CommandEntry("Remove data from a machine.", "data:remove_command"),
        },
    ),
    "runconfiguration": CommandEntry(
        "Create, list and delete run configurations.",
        commands={
            "create": CommandEntry(
                "Write a run configuration for a target.", "project:create_runconfiguration_command"
            ),
            "list": CommandEntry("List the run configurations.", "project:list_runconfigurations_command"),
            "delete": CommandEntry("Remove a run configuration.", "project:delete_runconfiguration_command"),
        },
    ),
    "asset": CommandEntry(
        "Download what was promoted from a run.",
        commands={
            "download": CommandEntry(
                "Copy a promoted file, checked against its digest.", "download_command:download_asset_command"
            )
        },
    ),
    "check": CommandEntry("Show what this machine has, and what is wrong with it.", "machine_commands:here_command"),
    "completion": CommandEntry("Print the completion script for a shell.", "main:completion_command"),
}

SHORT_FORMS: Mapping[str, CommandEntry] = {
    "submit": CommandEntry("Short for `experiment submit`.", "submit_command:submit_command"),
    "status": CommandEntry("Short for `experiment status`.", "experiment:status_command"),
    "logs": CommandEntry("Short for `experiment logs`.", "experiment:logs_command"),
    "cancel": CommandEntry("Short for `experiment cancel`.", "experiment:cancel_command"),
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
        except BrokenPipeError:  # the message is not read either
            code = READER_GONE
    finally:
        if ahead is not None:
            ahead.close()
    terminal.drop_unwritten()
    return code


def command_tree() -> Group:
    """The whole command line as a click group. Making it imports no command module."""
    return _Root(
        "holdfast",
        help="Run a Python script on the compute you have, and bring everything home.",
        epilog="Try: holdfast submit train.py",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


class _Family(Group):
    """A group whose names and helps come from a table; a command's module is imported when it is used."""

    def __init__(self, name: str, entry: CommandEntry) -> None:
        super().__init__(name, help=entry.about or entry.help)
        self._commands = entry.commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._commands)

    def is_hidden(self, ctx: click.Context, name: str) -> bool:
        return False

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(cmd_name, self._commands.get(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format(formatter, "Commands", dict(sorted(self._commands.items())))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        return _completions(self, ctx, incomplete, self._commands)


class _Root(Group):
    """Shows names and helps from the tables."""

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
        return _command(cmd_name, GROUPS.get(cmd_name) or SHORT_FORMS.get(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format(formatter, "Commands", GROUPS)
        _format(formatter, "Short forms", SHORT_FORMS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        return _completions(self, ctx, incomplete, {**GROUPS, **SHORT_FORMS})


def _command(name: str, entry: CommandEntry | None) -> click.Command | None:
    if entry is None:
        return None
    return _load(entry.place) if entry.place else _Family(name, entry)


def _format(formatter: click.HelpFormatter, title: str, entries: Mapping[str, CommandEntry]) -> None:
    with formatter.section(title):
        formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


def _completions(group: Group, ctx: click.Context, incomplete: str, entries: Mapping[str, CommandEntry]) -> list[Any]:
    from click.shell_completion import CompletionItem

    if incomplete.startswith("-"):
        return click.Command.shell_complete(group, ctx, incomplete)
    return [CompletionItem(name, help=entries[name].help) for name in entries if name.startswith(incomplete)]


def _load(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command = getattr(importlib.import_module(f"holdfast.cli.{module}"), name)
    if not isinstance(command, click.Command):
        raise TypeError(f"{place} is not a command")
    return command


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        terminal.data(f"holdfast {__version__}")
        context.exit()


def _run(arguments: list[str], switches: terminal.Switches, ahead: Ahead | None) -> int:
    tree = command_tree()
    instruction = os.environ.get("_HOLDFAST_COMPLETE")
    if instruction:
        from click.shell_completion import shell_complete

        importlib.import_module("holdfast.cli.completion")  # how names are quoted
        return shell_complete(tree, {"obj": switches}, "holdfast", "_HOLDFAST_COMPLETE", instruction)
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

        terminal.notices("".join(traceback.format_exception(problem)).rstrip().split("\n"))
    match problem:
        case click.UsageError():
            return _report_usage(problem)
        case click.ClickException():
            terminal.error(_in_one_line(problem))
            return ExitCode.USAGE
        case _:
            line, code = error_line(problem)
            terminal.show(replace(line, remedy=terminal.about_same_project(line.remedy, switches)))
            return code


def _report_usage(problem: click.UsageError) -> int:
    if type(problem).__name__ == "NoArgsIsHelpError":  # a group without a command: its message is the help itself
        terminal.notices(problem.format_message().split("\n"))
        return ExitCode.USAGE
    terminal.error(_in_one_line(problem))
    if problem.ctx is not None:
        terminal.hint(problem.ctx.get_usage())
        terminal.hint(f"More: {problem.ctx.command_path} --help")
    return ExitCode.USAGE


def _in_one_line(problem: click.ClickException) -> str:
    """click puts a list of choices below its message."""
    return " ".join(line.strip() for line in problem.format_message().split("\n"))


def _is_broken_pipe(problem: BaseException) -> bool:
    """Windows says "invalid argument" of a pipe whose reader is gone (https://bugs.python.org/issue35754)."""
    if sys.platform == "win32" and isinstance(problem, OSError):
        return problem.errno in (errno.EPIPE, errno.EINVAL) and problem.filename is None
    return isinstance(problem, BrokenPipeError)


def _reader_is_gone() -> bool:
    """True if the broken pipe is our own stdout or stderr, not one to a process that we talk to."""
    if sys.platform == "win32":
        return True  # it cannot be asked; a broken pipe to another process is a HostError by now
    import select

    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


_PLACES = {
    "bash": 'Put this line into ~/.bashrc:  eval "$(holdfast completion bash)"',
    "zsh": 'Put this line into ~/.zshrc, after compinit:  eval "$(holdfast completion zsh)"',
    "fish": "Let fish find it:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command("completion", cls=CliCommand, has_project=False)
@click.argument("shell", type=click.Choice(list(_PLACES)))
def completion_command(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(holdfast completion bash)"        in ~/.bashrc
    zsh:   eval "$(holdfast completion zsh)"         in ~/.zshrc, after compinit
    fish:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    importlib.import_module("holdfast.cli.completion")  # ours
    kind = get_completion_class(shell)
    if kind is None:  # click knows all three; a future one might not
        raise click.UsageError(f"There is no completion for {shell}.")
    script = kind(command_tree(), {}, "holdfast", "_HOLDFAST_COMPLETE").source().strip()
    terminal.write_as_it_is(sys.stdout, f"{script}\n")
    if terminal.is_terminal(sys.stdout):  # not when a start-up file evaluates it, at every start of the shell
        terminal.hint(_PLACES[shell])
