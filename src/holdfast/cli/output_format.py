"""What every command shares: `Group` and `CliCommand`, and `-o/--output` and `--query` on everything that reads.

group = Group("history", help="…")

@group.command("list")
@output_options
def list_runs(output: Output) -> None:
    output.show([...], columns=[Column("run_id", "Run"), ...])
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import click

from holdfast.cli import tables, terminal
from holdfast.errors import UnknownName, UsageError
from holdfast.frozen import dataclass
from holdfast.presenting.lines import Column as Column
from holdfast.shown_text import HARMFUL_IN_LINES, one_line

FORMATS = ("json", "jsonc", "table", "tsv")
_JSON_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")(?P<colon>:?)|(?P<word>\b(?:true|false|null)\b|-?\d[\d.eE+-]*)')


@dataclass(frozen=True)
class Output:
    """How the user wants data to be shown. `format` None: a table on a terminal, JSON in a pipe."""

    format: str | None = None
    query: str | None = None

    def show(self, data: Any, columns: Sequence[Column] = (), stream: TextIO | None = None) -> None:
        """Write `data` (a dict or a list of dicts, all JSON-able) to stdout.

        A list is a table of rows, a dict a table of two columns. With a query the result decides the columns.
        """
        target = stream or sys.stdout
        if self.query is not None:
            data, columns = _search(self.query, data), ()
        match self.chosen_format(target):
            case "json":
                terminal.write_as_it_is(target, _json_text(data, target) + "\n")
            case "jsonc":
                text = _json_text(data, target)
                terminal.write_as_it_is(target, (_coloured(text) if terminal.shows_colour(target) else text) + "\n")
            case "tsv":
                terminal.write_as_it_is(target, tables.tab_separated(data, columns))
            case _:
                tables.draw(data, columns, target)

    def chosen_format(self, stream: TextIO | None = None) -> str:
        """The format that `show` will use; a command that draws more than a table asks this first."""
        return self.format or ("table" if terminal.is_terminal(stream or sys.stdout) else "json")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `-o/--output` and `--query`; it gets both as the keyword `output`."""
    return _with_options(command, "table on a terminal, json in a pipe")


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, for a command that by default draws a page, in a pipe too."""
    return _with_options(command, "a page (table), in a pipe too")


def _with_options(command: Callable[..., Any], default: str) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_output(*arguments: Any, output_format: str | None, query: str | None, **options: Any) -> Any:
        return command(*arguments, output=Output(output_format, query), **options)

    query = click.option(
        "--query",
        metavar="JMESPATH",
        callback=lambda _context, _parameter, value: _checked_query(value),
        help="Choose from the result, e.g. \"[?status=='Completed'].run_id\". In tsv it also decides the fields: "
        '"[].[run_id, status]".',
    )
    form = click.option(
        "-o",
        "--output",
        "output_format",
        type=click.Choice(FORMATS),
        help=f"How to show it. Default: {default}.",
    )
    return form(query(with_output))


class CliCommand(click.Command):
    """A command with `--verbose` and `--debug`, which may stand anywhere on the line. `has_project`: it is about a
    project, so it has `--project` too."""

    def __init__(self, *arguments: Any, has_project: bool = True, **options: Any) -> None:
        super().__init__(*arguments, **options)
        is_taken = any(_PROJECT in each.opts for each in self.params)
        self.params.extend([*([_project_option()] if has_project and not is_taken else []), *_switch_options()])


class Group(click.Group):
    """A group of `CliCommand`s, which suggests the nearest name for an unknown one."""

    command_class = CliCommand
    group_class = type  # a group inside a group is a `Group` too

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params.extend(_switch_options())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            valid = [each for each in self.list_commands(ctx) if not self.is_hidden(ctx, each)]
            raise UnknownName(f"`{ctx.command_path}` command", name, valid)
        return super().resolve_command(ctx, args)

    def is_hidden(self, ctx: click.Context, name: str) -> bool:
        command = self.get_command(ctx, name)
        return command is None or command.hidden


def _switch_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--verbose"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_note_switch,
            help="Say more.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_note_switch,
            help="Say more, and show where an error comes from.",
        ),
    ]


_PROJECT = "--project"


def _project_option() -> click.Parameter:
    return click.Option(
        [_PROJECT],
        metavar="DIR",
        type=click.Path(),
        expose_value=False,
        is_eager=True,
        callback=_note_project,
        help="Use this folder as the project, instead of the one around the current folder.",
    )


def _note_project(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    switches = context.find_root().obj
    if value == "" and not context.resilient_parsing:
        raise UsageError("--project names no folder.", "Name one. If you typed a variable, it is not set.")
    if value is not None and isinstance(switches, terminal.Switches):
        switches.project = value


def _note_switch(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    switches = context.find_root().obj
    if value and isinstance(switches, terminal.Switches):
        switches.verbose = True
        switches.debug = switches.debug or parameter.name == "debug"


def _checked_query(query: str | None) -> str | None:
    """The query, if it can be read: a typing error shows before the command does its work."""
    if query is None:
        return None
    import jmespath
    from jmespath.exceptions import JMESPathError, LexerError, ParseError

    try:
        jmespath.compile(query)
    except LexerError as problem:
        raise _query_error(query, problem.message, problem.lexer_position) from None
    except ParseError as problem:
        # At the end of an incomplete expression there is no token, and the library gives no position.
        position = len(query) if problem.lex_position is None else problem.lex_position
        raise _query_error(query, f"{problem.msg}: `{problem.token_value or 'end of the query'}`", position) from None
    except JMESPathError as problem:
        raise _query_error(query, str(problem), 0) from None
    return query


def _search(query: str, data: Any) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.search(query, data)
    except JMESPathError as problem:
        raise _query_error(query, str(problem), None) from None
    except (
        TypeError,
        ValueError,
        ArithmeticError,
    ) as problem:  # the library leaves these to Python: 'a' > 1, ceil(NaN)
        error = _query_error(query, f"{problem}.", None)
        hint = "A metric may be a number in one run and text in another: [?type(loss) == 'number']"
        raise UsageError(error.message, f"{hint}\n{error.hint}") from None


def _query_error(query: str, problem: str, position: int | None) -> UsageError:
    where = "" if position is None else f" at position {position + 1}"
    shown = one_line(query)  # the mark stands below a character of it
    lines = [shown] if position is None else [shown, " " * len(one_line(query[:position])) + "^"]
    lines.append("For example: --query \"[?status=='Completed'].run_id\"")
    return UsageError(f"The query does not work{where}: {problem}", "\n".join(lines))


def _json_text(data: Any, stream: TextIO) -> str:
    """JSON that `stream` can take. What would steer a terminal, hide or be no UTF-8 is escaped as JSON does it."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
    ascii_only = not encoding.startswith("utf")
    try:
        text = json.dumps(data, indent=2, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:  # JSON has no NaN: as in the metrics' files, it becomes a string
        text = json.dumps(_without_nan(data), indent=2, ensure_ascii=ascii_only)
    return re.sub(HARMFUL_IN_LINES, lambda found: json.dumps(found[0])[1:-1], text)


def _without_nan(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_without_nan(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else ("Infinity" if data > 0 else "-Infinity")
    return data


def _coloured(text: str) -> str:
    def paint(token: re.Match[str]) -> str:
        if token["word"]:
            return f"\x1b[33m{token['word']}\x1b[0m"
        colour = "36" if token["colon"] else "32"
        return f"\x1b[{colour}m{token['text']}\x1b[0m{token['colon']}"

    return _JSON_TOKEN.sub(paint, text)
