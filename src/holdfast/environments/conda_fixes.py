"""Replacing, removing and adding items of the lists of a conda file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.environments.findings import Finding
from holdfast.environments.requirements_fixes import says
from holdfast.frozen import dataclass
from holdfast.project.documents import render_scalar
from holdfast.project.nodes import ListNode, MapNode, Node, Scalar, parse_nodes


def changed(text: str, findings: Sequence[Finding]) -> str | Finding:
    """The new text, or the finding that could not be applied."""
    items = list(_items(text))
    wanted: list[tuple[int, Finding]] = []
    meant = [[each.text] for each in items]
    for each in findings:
        at = _index(items, each)
        if at is None:
            return each
        wanted.append((at, each))
        replacement = each.replacement or ""
        meant[at] = [*meant[at][:-1], replacement] if each.original else [replacement, *meant[at]]
    result = text
    # From the end, so that places before it stay what they are; what is put in front of an item moves it by one.
    for at, each in sorted(wanted, key=lambda pair: (-pair[0], bool(pair[1].original))):
        moved = len(meant[at]) - 1 if each.original else 0
        edit = _edit(result, list(_items(result))[at + moved], each)
        if edit is None:
            return each
        result = result[: edit.start] + edit.text + result[edit.end :]
    expected = [(item.list_name, line) for item, lines in zip(items, meant, strict=True) for line in lines if line]
    found = [(each.list_name, each.text) for each in _items(result) if each.text]
    return result if found == expected and _others(result) == _others(text) else findings[0]


@dataclass(frozen=True)
class _Item:
    """One of `dependencies` or of a list of pip's in it, which is an item itself, without a text."""

    list_name: str
    text: str
    node: Node
    is_flow: bool


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def _items(text: str) -> Iterator[_Item]:
    root, problems = parse_nodes(text, "")
    entries = root.entries if isinstance(root, MapNode) and not problems else ()
    listed = next((each.value for each in entries if each.name == "dependencies"), None)
    for item in listed.items if isinstance(listed, ListNode) else ():
        is_flow = isinstance(listed, ListNode) and listed.is_flow
        yield _Item("dependencies", item.text.strip() if isinstance(item, Scalar) else "", item, is_flow)
        for entry in item.entries if isinstance(item, MapNode) else ():
            for each in entry.value.items if isinstance(entry.value, ListNode) else ():
                if isinstance(each, Scalar) and isinstance(entry.value, ListNode):
                    yield _Item("pip", each.text.strip(), each, entry.value.is_flow)


def _others(text: str) -> list[tuple[str, str]]:
    """All that an edit must not touch, as far as it has a meaning."""
    root, _ = parse_nodes(text, "")
    entries = root.entries if isinstance(root, MapNode) else ()
    return [
        (each.name, text[each.value.place.start : each.value.place.end].strip())
        for each in entries
        if each.name != "dependencies"
    ]


def _index(items: Sequence[_Item], finding: Finding) -> int | None:
    if not finding.original and (finding.replacement or "").startswith("python="):
        return 0 if items else None
    for at, each in enumerate(items):
        is_there = bool(each.text) and each.node.place.line == finding.line
        if is_there and (says(each.text, finding) if finding.original else each.list_name == "pip"):
            return at
    return None


def _edit(text: str, item: _Item, finding: Finding) -> _Edit | None:
    start = item.node.place.start
    end = start + len(text[start : item.node.place.end].rstrip())
    style = item.node.style if isinstance(item.node, Scalar) else ""
    written = _rendered(finding.replacement or "", style, item.is_flow)
    if item.is_flow:
        if not finding.original:
            return _Edit(start, start, f"{written}, ")
        return _Edit(start, end, written) if finding.replacement else _out_of_flow(text, start, end)
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end + 1
    prefix, rest = text[line_start:start], text[end:line_end]
    if not finding.original or not finding.replacement:
        if not re.fullmatch(r"[ \t]*-[ \t]+", prefix):
            return None
        newline = "\r\n" if text[:line_end].endswith("\r\n") else "\n"
        if not finding.original:
            return _Edit(line_start, line_start, f"{prefix}{written}{newline}")
        comment = rest.strip()
        kept = f"{prefix[: prefix.index('-')]}{rest.lstrip()}" if comment.startswith("#") else ""
        return _Edit(line_start, line_end, kept) if not comment or kept else None
    return _Edit(start, end, written)


def _out_of_flow(text: str, start: int, end: int) -> _Edit:
    after = re.compile(r"\s*,\s*").match(text, end)
    if after:
        return _Edit(start, after.end(), "")
    before = re.search(r"\s*,\s*$", text[:start])
    return _Edit(before.start() if before else start, end, "")


def _rendered(value: str, style: str, is_flow: bool) -> str:
    """Without quotes where that is safe: in a block, for what packages and options are made of, but `: ` and ` #`."""
    if not style and not is_flow and re.fullmatch(r"(?:[A-Za-z0-9]|--)(?:[^\s:#]|:(?=\S)| (?=[^#\s]))*", value):
        return value
    return render_scalar(value, style if style in ("'", '"') else "")
