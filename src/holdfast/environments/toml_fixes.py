"""Replacing and removing packages in the lists of a `pyproject.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.environments.findings import Finding
from holdfast.project.pyproject import parse_toml


def changed(text: str, findings: Sequence[Finding]) -> str | Finding:
    """The new text, or the finding that could not be applied."""
    lines = text.splitlines(keepends=True)
    meant = parse_toml(text)
    for each in sorted(findings, key=lambda each: each.line, reverse=True):
        replacement = each.replacement or ""
        if not each.original or not 0 < each.line <= len(lines):
            return each
        line = lines[each.line - 1]
        found = re.search(rf"([\"']){re.escape(each.original)}\1(\s*,)?", line)
        quote = found[1] if found and found[1] not in replacement else '"' if '"' not in replacement else "'"
        if not found or quote in replacement:
            return each
        written = f"{quote}{replacement}{quote}{found[2] or ''}" if replacement else ""
        rest = line[: found.start()] + written + line[found.end() :].removeprefix("" if written else " ")
        lines[each.line - 1] = rest if rest.strip() else ""
        meant = _swapped(meant, each.original, replacement)
    result = "".join(lines)
    try:
        return result if parse_toml(result) == meant else findings[0]
    except ValueError:
        return findings[0]


def _swapped(table: Mapping[str, object], original: str, replacement: str) -> Mapping[str, object]:
    """The same content with the first such dependency of the project another one, or without it."""
    project = table.get("project")
    listed = project.get("dependencies") if isinstance(project, Mapping) else None
    if not isinstance(project, Mapping) or not isinstance(listed, list) or original not in listed:
        return {}
    at = listed.index(original)
    new = [*listed[:at], *([replacement] if replacement else []), *listed[at + 1 :]]
    return {**table, "project": {**project, "dependencies": new}}
