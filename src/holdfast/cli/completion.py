"""Completion in shells: names of runs, targets and files are offered as one word each, quoted as the shell needs it
where the user types. A name that cannot be shown is not offered.

bash puts what it is given into the line as it is, so it is given quoted text; zsh and fish quote it themselves.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from click.shell_completion import (
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from holdfast.shown_text import is_harmless

_BASH = """\
%(complete_func)s() {
    local line kind
    COMPREPLY=()
    while IFS= read -r line; do
        kind=${line%%%%,*}
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${line#*,}") ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_BLANK, _ENDS, _IN_DOUBLE_QUOTES = " \t\n", ";|&()<>", '$`"\\\n'


class Typed(NamedTuple):
    """A line up to the cursor: the words before the last one, and that one as the shell would read it. What is put into
    the line takes the place of its characters from `begin`; `quote` is the quote that is open there, or empty."""

    words: list[str]
    last: str
    begin: int
    quote: str


def typed(line: str, breaks: str) -> Typed:
    """As bash reads a line that is not complete. `breaks` are the characters in a word after which it begins again to
    complete (COMP_WORDBREAKS)."""
    words: list[str] = []
    last, begin, quote = None, 0, ""
    characters = iter(line)
    for each in characters:
        if quote:
            if each == quote:
                quote, begin = "", len(last or "")
            elif each == "\\" and quote == '"':
                after = next(characters, "")
                last = (last or "") + (after if after in _IN_DOUBLE_QUOTES else each + after)
            else:
                last = (last or "") + each
        elif each in _BLANK or each in _ENDS:
            words += [] if last is None else [last]
            last, begin = None, 0
        elif each in "'\"":
            last = last or ""
            quote, begin = each, len(last)
        elif each == "\\":
            last = (last or "") + next(characters, "")
        else:
            last = (last or "") + each
            begin = len(last) if each in breaks else begin
    return Typed(words, last or "", begin, quote)


def quoted(text: str, quote: str) -> str | None:
    """For a place in the line where that quote is open; None where the text cannot stand there."""
    if quote == "'":
        return text.replace("'", "'\\''")
    if quote == '"':
        return None if "!" in text else re.sub(r'([$`"\\])', r"\\\1", text)  # bash replaces `!` even there
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)


class _Harmless(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        return [each for each in super().get_completions(args, incomplete) if is_harmless(str(each.value))]


@add_completion_class
class Bash(_Harmless):
    name = "bash"
    source_template = _BASH

    def complete(self) -> str:
        line = typed(os.environ.get("COMP_LINE", ""), os.environ.get("COMP_WORDBREAKS", " \t\n\"'><=;|&(:"))
        option, equals, _ = line.last.partition("=")  # of `--run=RUN` only the part behind it is completed
        before = option + equals if equals and option.startswith("-") else ""
        lines = []
        for item in self.get_completions(line.words[1:], line.last):
            text = quoted(f"{before}{item.value}"[line.begin :], line.quote)
            if text is not None:
                lines.append(f"{item.type},{text}")
        return "\n".join(lines)


@add_completion_class
class Zsh(_Harmless, ZshComplete):
    """`compadd` quotes."""


@add_completion_class
class Fish(_Harmless, FishComplete):
    """fish quotes. The value is all behind the first comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')
