"""Docstrings: each module has one, and each stands under what it explains. Rules take modules and return complaints."""

from __future__ import annotations

import ast
import itertools

from architecture.source_rules import Module, is_string


def undocumented(modules: list[Module]) -> list[str]:
    """Files without a docstring; an empty `__init__.py` needs none."""
    return [
        f"{module.name} has no docstring"
        for module in modules
        if module.tree.body and not ast.get_docstring(module.tree)
    ]


def stray_docstrings(modules: list[Module]) -> list[str]:
    """Two strings in a row: one of them stands under another name than the one that it explains."""
    return [
        f"{module.name}:{later.lineno} is a second docstring in a row"
        for module in modules
        for node in ast.walk(module.tree)
        for body in (getattr(node, "body", None),)
        if isinstance(body, list)
        for earlier, later in itertools.pairwise(body)
        if is_string(earlier) and is_string(later)
    ]
