"""`holdfast completion SHELL`: the script that a shell sources to complete our commands and options."""

from __future__ import annotations

import sys

import click

from holdfast.cli import terminal
from holdfast.cli.output import Command

_PLACES = {
    "bash": 'Put this line into ~/.bashrc:  eval "$(holdfast completion bash)"',
    "zsh": 'Put this line into ~/.zshrc, after compinit:  eval "$(holdfast completion zsh)"',
    "fish": "Let fish find it:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(_PLACES)))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(holdfast completion bash)"        in ~/.bashrc
    zsh:   eval "$(holdfast completion zsh)"         in ~/.zshrc, after compinit
    fish:  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import command_tree

    kind = get_completion_class(shell)
    if kind is None:  # click knows all three; a future one might not
        raise click.UsageError(f"There is no completion for {shell}.")
    sys.stdout.write(kind(command_tree(), {}, "holdfast", "_HOLDFAST_COMPLETE").source().strip() + "\n")
    if terminal.is_terminal(sys.stdout):  # not when a start-up file evaluates it, at every start of the shell
        terminal.hint(_PLACES[shell])
