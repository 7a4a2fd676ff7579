"""Python's own ways to follow links call themselves for each link of a chain, and a clone or a box may make a thousand:
the source uses `real_path`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.source_rules import one_by_one
from architecture.test_imports import PACKAGE

OWN = ("real_paths.py", "layout.py", "lost_locks.py")
"""The one that does it; and those that ask where folders of Holdfast's own lead."""


def recursive(package: Path) -> Iterator[str]:
    for module in one_by_one(package):
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_paths = node.func.attr == "resolve" and not node.args and not node.keywords
            if (
                (is_paths or node.func.attr == "realpath")
                and module.path.name not in OWN
                and "shim" not in module.parts
            ):
                yield f"{module.name}:{node.lineno}"


def test_links_are_followed_by_one_function() -> None:
    assert list(recursive(PACKAGE)) == []


@pytest.mark.parametrize("line", ["os.path.realpath('a')", "path.parent.resolve()"])
def test_another_way_is_noticed(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(f"import os\n{line}\nfolders.resolve(run)\n")
    assert list(recursive(tmp_path)) == ["holdfast.a:2"]
