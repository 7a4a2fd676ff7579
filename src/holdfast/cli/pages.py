"""Things on a page: two columns, a title and a text; lines broken between words on a terminal, and not at all in a
pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from holdfast.cli import terminal


def draw(rows: Sequence[tuple[str, str]], stream: TextIO) -> None:
    """A title that is the same as the one before is not repeated."""
    longest = max(len(title) for title, _ in rows)
    room = terminal.width() - longest - 2 if terminal.is_terminal(stream) else None
    last = ""
    for title, text in rows:
        shown = "" if title == last else title
        for line in _lines(terminal.one_line(text), room):
            if room is not None and len(line) > room:  # a path, a command: it has to be copied in one piece
                stream.write((terminal.style(shown, "bold", stream) + "\n" if shown else "") + f"  {line}\n")
            else:
                stream.write(f"{terminal.style(shown.ljust(longest), 'bold', stream)}  {line}".rstrip() + "\n")
            shown = ""
        last = title


def _lines(text: str, room: int | None) -> list[str]:
    """On a terminal, broken between words; a command at the end stands by itself."""
    if room is None or len(text) <= room:
        return [text]
    import textwrap

    before, word, after = text.partition("holdfast ")
    words = before if word and before.rstrip().endswith(":") else text
    found = textwrap.wrap(words, max(room, 20), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return found if words is text else [*found, word + after]
