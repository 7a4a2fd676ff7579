"""`environment check --fix`: findings' replacements written into the project's files by surgery on the text.

Everything else stays as it was, byte for byte, with comments, indentation and line ends. Each new text is read again
and compared with what was meant before anything is written; then all files are written, or none.
"""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Literal

from holdfast.environments.spec_findings import SpecFinding
from holdfast.errors import ConfigurationError, StorageError
from holdfast.frozen import dataclass
from holdfast.project.credentials import without_credentials
from holdfast.project.documents import BYTE_ORDER_MARK, MAXIMUM_BYTES, read_text, render_scalar
from holdfast.project.nodes import ListNode, MapNode, Node, Scalar, parse_nodes
from holdfast.project.problems import Mistake, Problem
from holdfast.project.pyproject import parse_toml
from holdfast.project.requirement_lines import in_one_spelling, logical_lines, parse_options
from holdfast.regular_files import read_regular
from holdfast.whole_files import whole


def apply_fixes(root: Path, findings: Iterable[SpecFinding]) -> tuple[str, ...]:
    """The files that were changed. Findings without a replacement are left to a person.

    Raises ConfigurationError where a line is no longer what the finding says, or cannot be changed without touching
    others, and StorageError where a file cannot be written; then no file is changed.
    """
    by_file: dict[str, list[SpecFinding]] = {}
    for each in findings:
        if each.replacement is not None and each not in by_file.setdefault(each.file, []):
            by_file[each.file].append(each)
    texts: dict[str, bytes] = {}
    problems: list[Problem] = []
    for file, wanted in by_file.items():
        text, unreadable = read_text(root, file)
        problems += unreadable
        if text is None:
            continue
        mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
        changed = _changed(text.removeprefix(BYTE_ORDER_MARK), file, wanted)
        if isinstance(changed, str):
            texts[file] = (mark + changed).encode("utf-8")
        else:
            message = "the line is not what was found, or cannot be changed without touching others"
            problems.append(Problem(file, changed.line, "", message, f"By hand: {changed.remedy}"))
    if problems:
        raise ConfigurationError(problems)
    _write_all(root, texts)
    return tuple(texts)


def _changed(text: str, file: str, findings: Sequence[SpecFinding]) -> str | SpecFinding:
    """The new text, or the finding that could not be applied."""
    items, others = _read(text, file)
    wanted: dict[int, list[SpecFinding]] = {}
    for each in findings:
        at = _index(items, each)
        if at is None:
            return each
        wanted.setdefault(at, []).append(each)
    meant = [[each.text] for each in items]
    result = text
    for at in sorted(wanted, reverse=True):  # from the end, so that places before it stay what they are
        lines = [each.replacement or "" for each in reversed(wanted[at]) if not each.original]
        own = next((each.replacement or "" for each in wanted[at] if each.original), items[at].text)
        meant[at] = [*lines, own] if own or not items[at].text else lines
        edited = _edited(result, items[at], meant[at])
        if edited is None:
            return wanted[at][0]
        result = edited
    expected = [(item.kind, line) for item, lines in zip(items, meant, strict=True) for line in lines]
    found, rest = _read(result, file)
    is_meant = [(each.kind, each.text) for each in found] == expected and rest == others
    return result if is_meant else findings[0]


@dataclass(frozen=True)
class _Item:
    """One thing that a file asks for, and where its words stand. A list of pip's in a conda file is one as well,
    without a text."""

    kind: Literal["conda", "pip", "toml", "line", "version"]
    text: str
    line: int
    start: int
    end: int
    quote: str = ""
    is_flow: bool = False


def _read(text: str, file: str) -> tuple[list[_Item], object]:
    """The items of a file in their order, and all else that has a meaning: an edit must not touch that."""
    if file.endswith((".yml", ".yaml")):
        root, problems = parse_nodes(text, "")
        entries = {each.name: each.value for each in root.entries} if isinstance(root, MapNode) and not problems else {}
        listed = entries.pop("dependencies", None)
        return list(_conda_items(text, listed)), {
            name: text[value.place.start : value.place.end].strip() for name, value in entries.items()
        }
    if file.endswith(".toml"):
        try:
            table = dict(parse_toml(text))
        except ValueError:
            return [], None
        project = dict(table["project"]) if isinstance(table.get("project"), Mapping) else {}
        texts = project.pop("dependencies", None)
        return list(_toml_items(text, texts if isinstance(texts, list) else [])), {**table, "project": project}
    return list(_lines(text, "version" if file.endswith(".python-version") else "line")), None


def _conda_items(text: str, listed: Node | None, kind: Literal["conda", "pip"] = "conda") -> Iterator[_Item]:
    if not isinstance(listed, ListNode):
        return
    for item in listed.items:
        start, words, quote = item.place.start, "", ""
        if isinstance(item, Scalar):
            words, quote = item.text.strip(), item.style
        end = start + len(text[start : item.place.end].rstrip())
        yield _Item(kind, words, item.place.line, start, end, quote, listed.is_flow)
        for entry in item.entries if isinstance(item, MapNode) and kind == "conda" else ():
            yield from _conda_items(text, entry.value, "pip")


_MOST_MISSED = 100
"""What is written otherwise than it is meant is looked for to the end of the file, and may be so thousands of times."""


def _toml_items(text: str, listed: Iterable[object]) -> Iterator[_Item]:
    """A TOML parser tells no places: the words in quotes, one after the other."""
    table = re.search(r"^[ \t]*\[[ \t]*project[ \t]*\]", text, re.MULTILINE)
    at, missed = table.end() if table else 0, 0
    for words in map(str, listed):
        found = re.compile(rf"([\"']){re.escape(words)}\1").search(text, at) if missed < _MOST_MISSED else None
        if found is None:
            missed += 1
            yield _Item("toml", words, -1, 0, 0)
            continue
        at = found.end()
        yield _Item("toml", words, text.count("\n", 0, at) + 1, found.start(), at, found[1], is_flow=True)


def _lines(text: str, kind: Literal["line", "version"]) -> Iterator[_Item]:
    written = [line.rstrip("\r\n") for line in text.splitlines(keepends=True)]
    starts = list(accumulate((len(line) for line in text.splitlines(keepends=True)), initial=0))
    for number, line in logical_lines(text):
        first = last = number - 1
        while last + 1 < len(written) and written[last].endswith("\\"):
            last += 1
        comment = re.search(r"\s#", written[last])
        end = len(written[last][: comment.start() if comment else None].rstrip())
        start = len(written[first]) - len(written[first].lstrip())
        yield _Item(kind, line, number, starts[first] + start, starts[last] + end)


def _index(items: Sequence[_Item], finding: SpecFinding) -> int | None:
    if not finding.original and (finding.replacement or "").startswith("python="):
        return 0 if items and items[0].kind == "conda" else None
    for at, each in enumerate(items):
        if each.text and each.line == finding.line and _is_meant(each, finding):
            return at
    return None


def _is_meant(item: _Item, finding: SpecFinding) -> bool:
    """Whether the item, as it stands in the file, is the finding's and nothing else."""
    if not finding.original:
        return item.kind in ("pip", "line")
    if item.kind == "version":
        return True
    line, original = in_one_spelling(without_credentials(item.text)), without_credentials(finding.original)
    if not line.startswith("-"):
        return line == original
    options = parse_options(line)
    return not isinstance(options, Mistake) and [each.text for each in options] == [original]


def _edited(text: str, item: _Item, lines: Sequence[str]) -> str | None:
    """The text with `lines` in the place of the item, or None where that cannot be written."""
    start, end = item.start, item.end
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end) + 1 or len(text)
    prefix = text[line_start:start]
    if lines:
        written = [text[start:end] if each == item.text else _rendered(each, item) for each in lines]
        between = ", " if item.is_flow else ("\r\n" if "\r\n" in text else "\n") + prefix
        return None if None in written else f"{text[:start]}{between.join(map(str, written))}{text[end:]}"
    bullet = re.fullmatch(r"([ \t]*)(?:-[ \t]+)?", prefix)
    comment = re.fullmatch(r"[ \t]*(?:,\s*|\s(?<![ \t])\s*)?(#.*\n?)?", text[end:line_end])
    if bullet and comment:
        kept = f"{bullet[1]}{comment[1]}" if comment[1] else ""
        return f"{text[:line_start]}{kept}{text[line_end:]}"
    if not item.is_flow:
        return None
    after, before = re.compile(r"\s*,\s*").match(text, end), text[:start].rstrip()
    if after:
        return text[:start] + text[after.end() :]
    return (before.removesuffix(",").rstrip() if before.endswith(",") else text[:start]) + text[end:]


def _rendered(value: str, item: _Item) -> str | None:
    """None where the item's file has no way to write it on one line. In a block of YAML what packages and options are
    made of is safe without quotes, but `: ` and ` #`."""
    if item.kind in ("line", "version"):
        return value
    if item.kind == "toml":
        quote = next((each for each in (item.quote, '"', "'") if each not in value), None)
        return None if quote is None else f"{quote}{value}{quote}"
    plain = r"(?:[A-Za-z0-9]|--)(?:[^\s:#]|:(?=\S)| (?=[^#\s]))*"
    if not item.quote and not item.is_flow and re.fullmatch(plain, value):
        return value
    return render_scalar(value, item.quote if item.quote in ("'", '"') else "")


def _write_all(root: Path, texts: Mapping[str, bytes]) -> None:
    """New files beside the old ones first: nothing is replaced while one could still not be written."""
    before: dict[Path, bytes] = {}
    try:
        with contextlib.ExitStack() as all_of_them:
            for file, content in texts.items():
                before[root / file] = all_of_them.enter_context(_written(root, file, content))
    except StorageError:
        for path, content in before.items():
            if read_regular(path, MAXIMUM_BYTES) != content:
                path.write_bytes(content)
        raise


@contextlib.contextmanager
def _written(root: Path, file: str, content: bytes) -> Iterator[bytes]:
    """What the file has before; after the block, `content`."""
    path = root / file
    try:
        with whole(path) as temporary:
            temporary.write_bytes(content)
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            yield read_regular(path, MAXIMUM_BYTES)
    except OSError as error:
        remedy = "Check its permissions and the disk. Nothing was changed."
        raise StorageError(f"`{file}` cannot be written: {error.strerror}.", remedy) from error
