"""`docs/walk.md`: each function that it names is in the file that it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")


def test_every_function_of_the_walk_is_where_the_page_says() -> None:
    steps = re.split(r"^\d+\. ", PAGE, flags=re.MULTILINE)[1:]
    assert len(steps) == 18
    assert [name for step in steps for name in _missing(step)] == []


def _missing(step: str) -> Iterator[str]:
    """The names of a step belong to the files of that step."""
    words = re.findall(r"`([\w/.]+)`", step)
    there = set().union(*(_names(word) for word in words if word.endswith(".py")))
    yield from (word for word in words if not word.endswith(".py") and word not in there)


def _names(path: str) -> set[str]:
    tree = ast.parse((ROOT / "src" / "holdfast" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
