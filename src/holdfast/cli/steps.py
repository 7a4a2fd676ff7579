"""What is done step by step, with one line for the step that is under way; only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import click

from holdfast.cli import terminal

T = TypeVar("T")


def render(happening: Iterable[Any], last: type[T]) -> T:
    """Show each event as it comes; the one that ends it all is returned."""
    from holdfast.workbench import events

    ended: T | None = None
    try:
        for event in happening:
            _clear()
            match event:
                case events.Doing():
                    _transient(event.text)
                case events.Done():
                    terminal.notice(event.text)
                case events.Warned():
                    terminal.warning(event.message)
                    terminal.hint(event.remedy)
                case events.KeyShown():
                    terminal.notice("Append this line to ~/.ssh/authorized_keys over there:")
                    click.echo(event.line)
                    terminal.notice("In one command, over there:")
                    terminal.hint(event.command)
                case events.Removed():
                    from holdfast.project.sizes import format_size

                    terminal.notice(f"removed {event.name} ({format_size(event.size)})")
                case _ if isinstance(event, last):
                    ended = event
    finally:
        _clear()
    if ended is None:
        raise AssertionError("it ended without its last event")
    return ended


def _transient(text: str) -> None:
    """A line that the next one replaces; only where somebody watches."""
    if terminal.is_terminal(sys.stderr):
        sys.stderr.write("\r\x1b[K" + terminal.one_line(text)[: terminal.width() - 1])
        sys.stderr.flush()


def _clear() -> None:
    _transient("")
