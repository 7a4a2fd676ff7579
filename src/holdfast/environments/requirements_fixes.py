"""Replacing, removing and adding lines of a requirements file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.environments.findings import Finding
from holdfast.project.credentials import without_credentials
from holdfast.project.requirement_lines import Misspelt, in_one_spelling, logical_lines, parse_options


def changed(text: str, findings: Sequence[Finding], is_version_file: bool = False) -> str | Finding:
    """The new text, or the finding that could not be applied."""
    lines = text.splitlines(keepends=True)
    newline = next((each[len(each.rstrip("\r\n")) :] for each in lines if each.endswith("\n")), "\n")
    meant = dict(logical_lines(text))
    expected = {number: [line] for number, line in meant.items()}
    for each in sorted(findings, key=lambda each: each.line, reverse=True):
        if each.line not in meant or not (is_version_file or says(meant[each.line], each) or not each.original):
            return each
        replacement = each.replacement or ""
        first, last = each.line - 1, _last(lines, each.line - 1)
        if not each.original:
            indentation = re.match(r"[ \t]*", lines[first])[0]  # type: ignore[index]  # it matches nothing too
            lines[first:first] = [f"{indentation}{replacement}{newline}"]
            expected[each.line].insert(0, replacement)
        else:
            lines[first : last + 1] = _replaced(lines[first : last + 1], replacement)
            expected[each.line][-1:] = [replacement] if replacement else []
    result = "".join(lines)
    found = [line for _, line in logical_lines(result)]
    return result if found == [line for each in expected.values() for line in each] else findings[0]


def says(written: str, finding: Finding) -> bool:
    """Whether the line, as it stands in the file, is the finding's and nothing else."""
    line = in_one_spelling(without_credentials(written))
    original = without_credentials(finding.original)
    if not line.startswith("-"):
        return line == original
    options = parse_options(line)
    return not isinstance(options, Misspelt) and [each.text for each in options] == [original]


def _last(lines: Sequence[str], first: int) -> int:
    """The last of the lines that are one."""
    at = first
    while at + 1 < len(lines) and lines[at].rstrip("\r\n").endswith("\\"):
        at += 1
    return at


def _replaced(lines: Sequence[str], replacement: str) -> list[str]:
    end = lines[-1][len(lines[-1].rstrip("\r\n")) :]
    indentation = re.match(r"[ \t]*", lines[0])[0]  # type: ignore[index]  # it matches nothing too
    comment = re.search(r"\s+#.*$", lines[-1].rstrip("\r\n"))
    if replacement:
        return [f"{indentation}{replacement}{comment[0] if comment else ''}{end}"]
    return [f"{indentation}{comment[0].lstrip()}{end}"] if comment else []
