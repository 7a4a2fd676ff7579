"""Draws data as tables: by rich on a terminal, as aligned text in a pipe, or separated by tabs. And pages of two
columns, whose lines are wrapped on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TextIO

from holdfast.cli import terminal
from holdfast.cli.terminal import Styled
from holdfast.presenting.lines import Column, Row
from holdfast.shown_text import one_line


def draw(data: Any, columns: Sequence[Column], stream: TextIO) -> None:
    """Write `data` as a table: a list as rows, a dict as two columns, anything else as itself."""
    if isinstance(data, dict):
        _draw_fields(data, columns, stream)
    elif isinstance(data, list):
        rows, chosen = _rows(data, columns)
        cells = [[_cell(row.get(column.key), column) for column in chosen] for row in rows]
        if terminal.is_terminal(stream):
            _draw_with_rich(chosen, cells, stream)
        elif chosen:
            _draw_plain(chosen, cells, stream)
    elif data is not None:
        terminal.write(stream, _plain(data))


def tab_separated(data: Any, columns: Sequence[Column]) -> str:
    """As `az` does it: no header, one line per row, None is empty. Without columns: all values in order."""
    if data is None:
        return ""
    rows = data if isinstance(data, list) else [data]
    return "".join("\t".join(map(_tab_safe, _values(row, columns))) + "\n" for row in rows)


def draw_page(found: Iterable[Row], stream: TextIO) -> None:
    """A title is not repeated on the next row."""
    rows = [(one_line(title), text) for title, text in found]
    longest = max(len(title) for title, _ in rows)
    room = terminal.width() - longest - 2 if terminal.is_terminal(stream) else None
    last = ""
    for title, text in rows:
        shown = "" if title == last else title
        for line in _lines(one_line(text), room):
            if room is not None and len(line) > room:  # a path, a command: to be copied in one piece
                if shown:
                    terminal.write(stream, Styled(shown, "bold"))
                terminal.write(stream, "  ", line)
            else:
                _write_field(shown.ljust(longest), line, stream)
            shown = ""
        last = title


def fitting(
    columns: Sequence[Column], by_worth: Sequence[str], rows: Sequence[dict[str, Any]], width: int
) -> list[Column]:
    """The columns that fit; `by_worth` are keys, the most telling first. A run id that is wrapped could not be
    copied."""
    by_key, chosen, used = {each.key: each for each in columns}, set[str](), -_GAP
    for key in by_worth:
        needed = max(len(by_key[key].title), *(len(one_line(str(row[key]))) for row in rows)) + _GAP
        if used + needed <= width or not chosen:
            used += needed
            chosen.add(key)
    return [each for each in columns if each.key in chosen]


def left_out(titles: Sequence[str], width: int) -> str:
    """One line that names the missing columns and where they are."""
    where = ": -o json, or a wider terminal"
    for count in range(len(titles), 0, -1):
        more = f" and {len(titles) - count} more" if count < len(titles) else ""
        text = one_line(f"Left out: {', '.join(titles[:count])}{more}{where}")
        if len(text) <= width:
            return text
    return f"{len(titles)} columns are left out{where}"


_GAP = 3
"""The gap between two columns of a table on a terminal."""


def _lines(text: str, room: int | None) -> list[str]:
    """Wrapped between words on a terminal; a command at the end gets its own line."""
    if room is None or len(text) <= room:
        return [text]
    import textwrap

    before, word, after = text.partition("holdfast ")
    words = before if word and before.rstrip().endswith(":") else text
    found = textwrap.wrap(words, max(room, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return found if words is text else [*found, word + after]


def _rows(data: list[Any], columns: Sequence[Column]) -> tuple[list[dict[str, Any]], Sequence[Column]]:
    """The data as dicts, and the columns to show: those asked for, or all that the rows have."""
    rows = [_as_row(each) for each in data]
    if columns:
        return rows, columns
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return rows, [Column(key, key, _natural_alignment(rows, key)) for key in keys]


def _as_row(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {f"column{number}": each for number, each in enumerate(value, 1)}
    return {"result": value}


def _natural_alignment(rows: list[dict[str, Any]], key: str) -> Any:
    present = [row[key] for row in rows if row.get(key) is not None]
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
    return "right" if present and numeric else "left"


def _draw_fields(data: dict[str, Any], columns: Sequence[Column], stream: TextIO) -> None:
    """A dict, as `title  value` lines. With columns, those that the dict has."""
    chosen = [each for each in columns if each.key in data] or [Column(key, key) for key in data]
    titles = [one_line(column.title) for column in chosen]
    longest = max(map(len, titles), default=0)
    for title, column in zip(titles, chosen, strict=True):
        _write_field(title.ljust(longest), _cell(data[column.key], column).rstrip(), stream)


def _write_field(title: str, text: str, stream: TextIO) -> None:
    terminal.write(stream, *((Styled(title, "bold"), "  ", text) if text else (Styled(title.rstrip(), "bold"),)))


def _draw_with_rich(columns: Sequence[Column], cells: list[list[str]], stream: TextIO) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(one_line(column.title), justify=column.align, overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    if columns:
        colours: Literal["auto"] | None = "auto" if terminal.shows_colour(stream) else None
        Console(file=stream, highlight=False, color_system=colours).print(table)


def _draw_plain(columns: Sequence[Column], cells: list[list[str]], stream: TextIO) -> None:
    titles = [one_line(column.title) for column in columns]
    widths = [max(len(row[index]) for row in [titles, *cells]) for index in range(len(columns))]
    for row in [titles, ["-" * width for width in widths], *cells]:
        padded = (
            cell.rjust(width) if column.align == "right" else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        terminal.write(stream, "  ".join(padded).rstrip())


def _cell(value: Any, column: Column) -> str:
    """Harmless here already: its width is that of what is shown."""
    return one_line(column.format(value)) if column.format else "" if value is None else one_line(_plain(value))


def _values(row: Any, columns: Sequence[Column]) -> list[Any]:
    if isinstance(row, dict):
        return [row.get(column.key) for column in columns] if columns else list(row.values())
    return row if isinstance(row, list) else [row]


def _tab_safe(value: Any) -> str:
    """One value on one line, and in one field."""
    return "" if value is None else one_line(_plain(value))


def _plain(value: Any) -> str:
    """Text as it is, anything else as JSON writes it (`true`, `0.5`, `{"a": 1}`)."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
