"""From YAML text to nodes that know their place: line, column, first and last character.

Built from the parser's events rather than by `yaml.compose`: the C composer recurses without a bound and
takes the whole process down on deep nesting, and a node reached through an alias would carry the place of its
anchor. The bounds below are far above any real configuration and make every document cheap to walk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.frozen import dataclass, replace
from holdfast.project.problems import Problem

if TYPE_CHECKING:
    import yaml

MAXIMUM_DEPTH = 20
_MAXIMUM_NODES = 20_000
"""Nodes of a document with every alias written out."""

_TOO_DEEP = f"is nested more than {MAXIMUM_DEPTH} deep"
_TOO_MANY = f"has more than {_MAXIMUM_NODES} values"

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


@dataclass(frozen=True)
class TextPosition:
    """`line` and `column` count from 1 and 0; `start` and `end` are indexes into the text."""

    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True)
class Scalar:
    """`text` is the value as written, whatever YAML would make of it; `style` is empty for a plain one."""

    place: TextPosition
    text: str
    style: str = ""
    tag: str | None = None
    size: int = 1
    depth: int = 0

    @property
    def is_null(self) -> bool:
        if self.tag is not None:
            return self.tag == "tag:yaml.org,2002:null"
        return not self.style and self.text in _NULLS


@dataclass(frozen=True)
class ListNode:
    place: TextPosition
    items: tuple[Node, ...]
    is_flow: bool
    size: int
    depth: int


@dataclass(frozen=True)
class MappingEntry:
    key: Scalar
    value: Node
    is_alias: bool = False

    @property
    def name(self) -> str:
        return self.key.text

    @property
    def line(self) -> int:
        return self.key.place.line


@dataclass(frozen=True)
class MapNode:
    place: TextPosition
    entries: tuple[MappingEntry, ...]
    is_flow: bool
    size: int
    depth: int


Node = Scalar | ListNode | MapNode


def parse_nodes(text: str, file: str) -> tuple[Node | None, list[Problem]]:
    """The one document of `text` (without byte order mark); None when it is empty or cannot be read."""
    import yaml  # 15 to 20 ms: most projects need none of it

    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            builder.take(event)
    except _Refused as refused:
        builder.problems.append(refused.problem)
        return None, builder.problems
    except yaml.MarkedYAMLError as error:
        return None, [*builder.problems, _syntax_problem(error, text, file)]
    except (yaml.YAMLError, ValueError) as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
        message = "holds a character that is not text"
        return None, [
            *builder.problems,
            Problem(file, line, "", message, "Save the file as plain UTF-8 text."),
        ]
    return builder.root, builder.problems


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True)
class _Open:
    """A list or mapping whose end has not come yet; `children` has keys and values in turn for a mapping."""

    start: Any
    is_map: bool
    children: list[tuple[Node, bool]]


class _Builder:
    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.root: Node | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0
        self._events = 0

    def take(self, event: Any) -> None:
        self._events += 1
        if self._events > _MAXIMUM_NODES:
            self._refuse(event, _TOO_MANY, "This is no configuration file: name another.")
        match type(event).__name__:
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    self._refuse(event, "a second document begins here", "Remove the line `---` and what follows.")
            case "AliasEvent":
                self._alias(event)
            case "ScalarEvent":
                scalar = Scalar(_place(event, event), event.value, event.style or "", event.tag)
                self._add(self._named(event, scalar))
            case "SequenceStartEvent" | "MappingStartEvent":
                if len(self._open) >= MAXIMUM_DEPTH:
                    self._refuse(event, _TOO_DEEP, "Write it flatter.")
                self._open.append(_Open(event, type(event).__name__ == "MappingStartEvent", []))
            case "SequenceEndEvent" | "MappingEndEvent":
                begun = self._open.pop()
                self._add(self._named(begun.start, self._close(begun, event)))
            case _:
                pass

    def _close(self, begun: _Open, end: Any) -> Node:
        size = 1 + sum(child.size for child, _ in begun.children)
        depth = 1 + max((child.depth for child, _ in begun.children), default=0)
        if size > _MAXIMUM_NODES:
            self._refuse(begun.start, _TOO_MANY, "Remove aliases (`*name`) or values.")
        if depth > MAXIMUM_DEPTH:
            self._refuse(begun.start, _TOO_DEEP, "Write it flatter.")
        is_flow = bool(begun.start.flow_style)
        last = begun.children[-1][0].place.end if begun.children else begun.start.end_mark.index
        place = _place(begun.start, end)
        # A block collection ends, for the parser, where the next token begins: comments would be its own.
        place = place if is_flow else replace(place, end=last)
        if not begun.is_map:
            return ListNode(place, tuple(child for child, _ in begun.children), is_flow, size, depth)
        return MapNode(place, tuple(self._entries(begun.children)), is_flow, size, depth)

    def _entries(self, children: list[tuple[Node, bool]]) -> Iterable[MappingEntry]:
        seen: dict[str, int] = {}
        for (key, _), (value, is_alias) in zip(children[::2], children[1::2], strict=True):
            line = key.place.line
            if not isinstance(key, Scalar):
                self._problem(line, "", "a key must be a plain word", "Write `key: value`.")
            elif key.text == "<<" and not key.style:
                self._problem(line, "<<", "merging of mappings is not supported", "Write the keys out.")
            elif key.text in seen:
                first = seen[key.text]
                self._problem(line, key.text, f"is written twice, first in line {first}", "Remove one of the two.")
            else:
                seen[key.text] = line
                yield MappingEntry(key, value, is_alias)

    def _alias(self, event: Any) -> None:
        node = self._anchors.get(event.anchor)
        if node is None:
            self._refuse(event, f"there is no anchor `&{event.anchor}` before this line", "Write the value out.")
        self._add(replace(node, place=_place(event, event)), is_alias=True)

    def _named(self, event: Any, node: Node) -> Node:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _add(self, node: Node, is_alias: bool = False) -> None:
        if self._open:
            self._open[-1].children.append((node, is_alias))
        else:
            self.root = node

    def _problem(self, line: int, key: str, message: str, remedy: str) -> None:
        self.problems.append(Problem(self.file, line, key, message, remedy))

    def _refuse(self, event: Any, message: str, remedy: str) -> NoReturn:
        raise _Refused(Problem(self.file, event.start_mark.line + 1, "", message, remedy))


def _place(first: Any, last: Any) -> TextPosition:
    mark = first.start_mark
    return TextPosition(mark.line + 1, mark.column, mark.index, last.end_mark.index)


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    problem = str(error.problem or "cannot be read")
    begins_earlier = "end of stream" in problem or "expected ':'" in problem
    mark = (error.context_mark if begins_earlier else None) or error.problem_mark or error.context_mark
    lines = text.split("\n")
    used = max(1, len(text.rstrip().split("\n")))
    line = min(mark.line + 1, used) if mark is not None else 1
    written = lines[line - 1]
    indentation = written[: len(written) - len(written.lstrip())]
    if "\t" in indentation:
        return Problem(file, line, "", "a tab is used to indent", "Use spaces.")
    if "expected ':'" in problem:
        return Problem(file, line, "", "this line is not `key: value`", "Write a colon and a space after the key.")
    if "end of stream" in problem and "quoted" in str(error.context):
        return Problem(file, line, "", "a quote that begins here is never closed", "Close it.")
    if "cannot start any token" in problem:
        return Problem(file, line, "", "a value begins with a character that YAML reserves", "Put it in quotes.")
    return Problem(file, line, "", f"is not YAML: {problem}", "Write `key: value`, indented with spaces.")
