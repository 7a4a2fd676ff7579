"""The part of YAML that nearly all configuration files are written in, read without PyYAML: loading that costs a local
submit 6 to 9 ms of processor time, of about 170 (medians of 15 and 40 pairs, in turns).

That part is: `key: value` lines, below an empty one perhaps a list or a mapping of such values, as an item of a list
perhaps `- key:` with a list below it, and comments. A file with anything else is left to `nodes.parse_nodes`, which
gives the same nodes and knows every problem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.frozen import dataclass
from holdfast.project.nodes import ListNode, MapNode, MappingEntry, Node, Scalar, TextPosition

MAXIMUM_LINES = 1000

_LINE = re.compile(
    r"""(?P<indent>\ *)(?!\ )
    (?:
        (?: (?P<dash>-)(?:\ +(?P<inner>[A-Za-z_][A-Za-z0-9_]{0,99}):(?=\ *$|\ +\#))?(?=\ |$)
            | (?P<key>[A-Za-z_][A-Za-z0-9_]{0,99}): )
        (?: \ +(?P<value>
            (?:[\w./~$\\]|-[\w./-]) (?:[:\ ]?[\w./~$\\@%+=<>!,;*()\[\]-])*
            | "[^"\\]*" | '[^']*'
        ))?
    )?
    (?:\ *|(?:^|\ |(?<=\ ))\ *\#.*)""",
    re.VERBOSE,
)


def parse_plain(text: str) -> MapNode | None:
    """The mapping that the text is; None where there is more to it than this module knows."""
    if not text.isascii() or text.count("\n") > MAXIMUM_LINES:
        return None
    groups: list[list[_Line]] = []  # a key of the mapping, and what stands below it
    start = 0
    for number, written in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(written)
        if match is None or not written.isprintable():
            return None
        line = _Line(number, start, match)
        start += len(written) + 1
        if line.is_key and line.indent == 0:
            groups.append([line])
        elif line.is_key or line.is_item:
            if not groups:
                return None
            groups[-1].append(line)
    entries = [_entry(*group) for group in groups]
    return _mapping([each for each in entries if each is not None]) if all(entries) else None


@dataclass(frozen=True)
class _Line:
    number: int
    start: int
    match: re.Match[str]

    @property
    def indent(self) -> int:
        return self.match.end("indent")

    @property
    def is_key(self) -> bool:
        return self.match["key"] is not None

    @property
    def is_item(self) -> bool:
        return self.match["dash"] is not None

    @property
    def value(self) -> Scalar | None:
        return self.scalar("value") if self.match["value"] is not None else None

    def scalar(self, group: str) -> Scalar:
        text = self.match[group]
        style = text[0] if text[0] in "\"'" else ""
        return Scalar(self.place(*self.match.span(group)), text[1:-1] if style else text, style)

    def place(self, begin: int, end: int) -> TextPosition:
        return TextPosition(self.number, begin, self.start + begin, self.start + end)


def _entry(head: _Line, *below: _Line) -> MappingEntry | None:
    key = head.scalar("key")
    value: Node | None = head.value
    if below:
        value = _collection(below) if value is None else None
    elif value is None:
        after = head.match.end("key") + 1
        value = Scalar(head.place(after, after), "")
    return None if value is None else MappingEntry(key, value)


def _collection(lines: Sequence[_Line]) -> Node | None:
    first = lines[0]
    if first.is_item:
        return _list(lines)
    if any(line.indent != first.indent or line.is_item for line in lines):
        return None
    entries = [_entry(line) for line in lines]
    return _mapping([each for each in entries if each is not None])


def _list(lines: Sequence[_Line]) -> ListNode | None:
    first = lines[0]
    groups: list[list[_Line]] = []  # an item, and what stands below it
    for line in lines:
        if line.indent == first.indent:
            groups.append([line])
        elif line.indent > first.indent:
            groups[-1].append(line)
        if not line.is_item or line.indent < first.indent:
            return None
    items = [_item(*group) for group in groups]
    found = tuple(each for each in items if each is not None)
    if len(found) < len(items):
        return None
    place = TextPosition(first.number, first.indent, first.start + first.indent, found[-1].place.end)
    size, depth = 1 + sum(each.size for each in found), 1 + max(each.depth for each in found)
    return ListNode(place, found, False, size, depth)


def _item(head: _Line, *below: _Line) -> Node | None:
    """A value, or a mapping of one key to a list of values."""
    if head.match["inner"] is None:
        return None if below else head.value
    if not below or below[0].indent < head.match.start("inner") or any(line.match["inner"] for line in below):
        return None
    inner = _list(below)
    return None if inner is None else _mapping([MappingEntry(head.scalar("inner"), inner)])


def _mapping(entries: Sequence[MappingEntry]) -> MapNode | None:
    """None where a key is there twice, which is a problem to be told, or there is none."""
    if not entries or len({each.name for each in entries}) < len(entries):
        return None
    begin, end = entries[0].key.place, entries[-1].value.place.end
    size = 1 + sum(each.key.size + each.value.size for each in entries)
    depth = 1 + max(each.value.depth for each in entries)
    return MapNode(TextPosition(begin.line, begin.column, begin.start, end), tuple(entries), False, size, depth)
