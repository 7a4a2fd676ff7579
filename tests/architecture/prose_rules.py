"""Each sentence that Holdfast says is asserted in one test function: whoever rewords it changes one test.

Sentences are compared by phrases: five words in a row with nothing but spaces and commas between them, or four that
stand alone. A name, a path or code has none, a command (`sudo …`) is none, and a value that is filled in ends one.
Pages, strings of three lines and more, may repeat what the test of a sentence says.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from architecture.source_rules import Function, Module

WORDS, ALONE = 5, 4
COMMON = 3
"""A phrase in more messages than these is a turn of speech and names none of them."""
_FILLED_IN = "\0"
_RUN = re.compile(r"[A-Za-z][A-Za-z'-]*(?:,? [A-Za-z][A-Za-z'-]*)*")
_PATTERN = re.compile(r"\w\|\w|\(\?|\[\^")
"""What other programs say is looked for with regular expressions: those are no messages."""
_PLACEHOLDER = re.compile(r"%[-0-9.]*[a-z]|{\w*}")
Phrase = tuple[str, ...]


def repeated(modules: list[Module], tests: dict[str, ast.Module], allowed: Iterable[str]) -> list[str]:
    """Messages of `modules` that several functions of `tests`, by path, assert, but for those that have a text of
    `allowed` in them. Where a text could be of several messages they are one."""
    messages = _messages(modules, tuple(allowed))
    index: dict[Phrase, set[str]] = defaultdict(set)
    for place, text in messages.items():
        for phrase in _phrases(text):
            index[phrase].add(place)
    places: dict[frozenset[str], set[str]] = defaultdict(set)
    for path, tree in tests.items():
        for function in _functions(tree.body):
            for text in _asserted(function):
                places[_meant(text, index)].add(f"{path} {function.name}")
    return [
        f"{message} `{_shown(messages[message])}` is asserted in " + ", ".join(sorted(found))
        for message, found in sorted((min(meant), found) for meant, found in places.items() if meant)
        if len(found) > 1
    ]


def read_tests(root: Path) -> dict[str, ast.Module]:
    """All Python files below `root`, but for `cases`, which are what users have."""
    paths = [each.relative_to(root) for each in sorted(root.rglob("*.py"))]
    return {
        str(each): ast.parse((root / each).read_text(encoding="utf-8")) for each in paths if "cases" not in each.parts
    }


def _messages(modules: list[Module], allowed: tuple[str, ...]) -> dict[str, str]:
    """By place. What stands in one expression is one message."""
    found: dict[str, str] = {}
    for module in modules:
        for line, text in _texts(module.tree):
            if not _PATTERN.search(text) and not any(each in text for each in allowed):
                place = f"{module.name}:{line}"
                found[place] = found.get(place, "") + _FILLED_IN + _PLACEHOLDER.sub(_FILLED_IN, text)
    return {place: text for place, text in found.items() if next(_phrases(text), None)}


def _texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings and their lines, without docstrings."""
    if isinstance(node, ast.JoinedStr):
        yield (
            node.lineno,
            "".join(str(each.value) if isinstance(each, ast.Constant) else _FILLED_IN for each in node.values),
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def _functions(body: list[ast.stmt]) -> Iterator[Function]:
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _asserted(function: Function) -> Iterator[str]:
    """What a test expects: in `assert`, in `match=`, in its parameters and in its variables."""
    for decorator in function.decorator_list:
        yield from _sentences(decorator)
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield from _sentences(node.test)
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield from (re.sub(r"\\(.)", r"\1", text) for text in _sentences(node.value))
        elif isinstance(node, ast.Assign) and not any(isinstance(each, ast.Call) for each in ast.walk(node.value)):
            yield from _sentences(node.value)


def _sentences(node: ast.AST) -> Iterator[str]:
    return (text for _, text in _texts(node) if text.strip().count("\n") < 2)


def _meant(text: str, index: dict[Phrase, set[str]]) -> frozenset[str]:
    """The messages that have most of its phrases."""
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
        words = tuple(re.split(",? ", run))
        if "sudo" not in words:
            yield words


def _shown(text: str) -> str:
    return text.strip(_FILLED_IN).replace(_FILLED_IN, "…")
