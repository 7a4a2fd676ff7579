"""Each sentence that Holdfast prints is asserted in one test function, so rewording it changes one test.

Sentences are compared by phrases: five words in a row with only spaces and commas between them, or four that stand
alone. A name, a path or code has no phrase, a command (`sudo …`) is not one, and a filled-in value ends one. Pages,
which are strings of three lines and more, may repeat what the test of a sentence says.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from architecture.source_rules import Function, one_by_one

WORDS, ALONE = 5, 4
COMMON = 3
"""A phrase in more messages than this is common language and identifies none of them."""
_FILLED_IN = "\0"
_WORD = "[A-Za-z][A-Za-z'-]*"
_RUN = re.compile(f"{_WORD}(?:,? {_WORD}){{{ALONE - 1},}}")
_SENTENCE = re.compile(f"{_WORD}(?:,? {_WORD}){{{ALONE - 1}}}")
_BETWEEN = re.compile(",? ")
_PATTERN = re.compile(r"\w\|\w|\(\?|\[\^")
"""Regular expressions search the output of other programs: they are no messages."""
_PLACEHOLDER = re.compile(r"%[-0-9.]*[a-z]|{\w*}")
_ESCAPED = re.compile(r"\\(.)")
_WITHOUT_TEXT = (ast.Name, ast.expr_context, ast.operator, ast.cmpop, ast.alias)
Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Said:
    """A string of the source, and where it is: strings on one line are one message."""

    place: str
    text: str


def repeated(said: Iterable[Said], asserted: Mapping[str, Iterable[str]], allowed: Iterable[str]) -> list[str]:
    """Messages that several tests of `asserted` have, except those with a text of `allowed` in them. If a text could
    belong to several messages, they count as one."""
    messages = _messages(said, tuple(allowed))
    index: dict[Phrase, set[str]] = defaultdict(set)
    for place, text in messages.items():
        for phrase in _phrases(text):
            index[phrase].add(place)
    places: dict[frozenset[str], set[str]] = defaultdict(set)
    for test, texts in asserted.items():
        for text in texts:
            places[_meant(text, index)].add(test)
    return [
        f"{message} `{_shown(messages[message])}` is asserted in " + ", ".join(sorted(found))
        for message, found in sorted((min(meant), found) for meant, found in places.items() if meant)
        if len(found) > 1
    ]


def read_said(package: Path) -> list[Said]:
    """Sentences of all modules below the folder `package`."""
    return [
        Said(f"{module.name}:{line}", text)
        for module in one_by_one(package)
        for line, text in _texts(module.tree)
        if _SENTENCE.search(text) and not _PATTERN.search(text)
    ]


def read_asserted(root: Path) -> dict[str, list[str]]:
    """What the test functions below `root` expect, by path and name, without `cases`, which are users' files."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if "cases" not in relative.parts:
            body = ast.parse(path.read_text(encoding="utf-8")).body
            used: set[str] = set()
            for function in _functions(body):
                found.setdefault(f"{relative} {function.name}", []).extend(_asserted(function))
                used |= {each.id for decorator in function.decorator_list for each in _names(decorator)}
            for name, table in _tables(body):
                if name in used:
                    values = (text for value in _values(table) for text in _sentences(value))
                    found.setdefault(f"{relative} {name}", []).extend(values)
    return found


def _messages(said: Iterable[Said], allowed: tuple[str, ...]) -> dict[str, str]:
    """By place."""
    found: dict[str, str] = {}
    for each in said:
        if not any(text in each.text for text in allowed):
            text = _PLACEHOLDER.sub(_FILLED_IN, each.text)
            found[each.place] = found.get(each.place, "") + _FILLED_IN + text
    return found


def _texts(root: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings and their lines, without docstrings."""
    left = [root]
    while left:
        node = left.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (str(each.value) if isinstance(each, ast.Constant) else _FILLED_IN for each in node.values)
            yield node.lineno, "".join(parts)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            left += reversed([each for each in ast.iter_child_nodes(node) if not isinstance(each, _WITHOUT_TEXT)])


def _tables(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Values of a module that a parametrization may name: they count once for all tests that use them."""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value


def _values(table: ast.expr) -> Iterator[ast.expr]:
    """The values of a table, without names of cases and without what is made of arguments: those are inputs."""
    if isinstance(table, ast.Dict):
        yield from (inner for each in table.values for inner in _values(each))
    elif isinstance(table, (ast.List, ast.Tuple, ast.Set)):
        yield from (inner for each in table.elts for inner in _values(each))
    elif isinstance(table, (ast.Constant, ast.JoinedStr)):
        yield table


def _names(decorator: ast.expr) -> Iterator[ast.Name]:
    return (each for part in _arguments(decorator) for each in ast.walk(part) if isinstance(each, ast.Name))


def _functions(body: list[ast.stmt]) -> Iterator[Function]:
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _asserted(function: Function) -> Iterator[str]:
    """In `assert`, in `match=` of `with`, in parameters and in variables."""
    for decorator in function.decorator_list:
        for argument in _arguments(decorator):
            yield from _sentences(argument)
    for node in _statements(function.body):
        if isinstance(node, ast.Assert):
            yield from _sentences(node.test)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for keyword in (each for item in node.items for each in ast.walk(item)):
                if isinstance(keyword, ast.keyword) and keyword.arg == "match":
                    yield from (_ESCAPED.sub(r"\1", text) for text in _sentences(keyword.value))
        elif isinstance(node, ast.Assign) and not any(isinstance(each, ast.Call) for each in ast.walk(node.value)):
            yield from _sentences(node.value)


def _arguments(decorator: ast.expr) -> list[ast.expr]:
    """Without `ids`, which are names of cases."""
    if not isinstance(decorator, ast.Call):
        return []
    return [*decorator.args, *(each.value for each in decorator.keywords if each.arg != "ids")]


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Including nested ones. Nothing else has asserted strings: most nodes of a test are arguments of calls."""
    left: list[ast.AST] = list(reversed(body))
    while left:
        node = left.pop()
        yield node
        for field in ("finalbody", "orelse", "cases", "handlers", "body"):
            left += reversed(getattr(node, field, ()))


def _sentences(node: ast.AST) -> Iterator[str]:
    return (text for _, text in _texts(node) if _SENTENCE.search(text) and text.strip().count("\n") < 2)


def _meant(text: str, index: dict[Phrase, set[str]]) -> frozenset[str]:
    """The messages that share most of its phrases."""
    shared: dict[str, int] = defaultdict(int)
    for words in _runs(text):
        for at in range(len(words)):
            for message in {each for count in (ALONE, WORDS) for each in index.get(words[at : at + count], ())}:
                shared[message] += 1
    most = max(shared.values(), default=0)
    meant = frozenset(message for message, count in shared.items() if count == most)
    return meant if len(meant) <= COMMON else frozenset()


def _phrases(text: str) -> Iterator[Phrase]:
    for words in _runs(text):
        count = min(len(words), WORDS)
        if count >= ALONE:
            yield from (words[at : at + count] for at in range(len(words) - count + 1))


def _runs(text: str) -> Iterator[Phrase]:
    """Words that follow each other."""
    for run in _RUN.findall(text):
        words = tuple(_BETWEEN.split(run))
        if "sudo" not in words:
            yield words


def _shown(text: str) -> str:
    return text.strip(_FILLED_IN).replace(_FILLED_IN, "…")
