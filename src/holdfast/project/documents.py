"""A YAML mapping as a document with places: reading a file of the project, and changing one value of it.

Changing is surgery on the text: everything but the value stays as it was, byte for byte, with comments,
order, quotes and line ends.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

from holdfast.errors import ConfigurationError, StorageError
from holdfast.frozen import dataclass
from holdfast.project.nodes import ListNode, MapNode, MappingEntry, Node, Scalar, parse_nodes
from holdfast.project.plain import parse_plain
from holdfast.project.problems import Problem
from holdfast.regular_files import read_regular
from holdfast.whole_files import write_whole

MAXIMUM_BYTES = 1_000_000
BYTE_ORDER_MARK = "\ufeff"

Value = str | bool | int | float


@dataclass(frozen=True)
class Document:
    """`file` is relative to the project, with `/`."""

    file: str
    root: MapNode

    def entry(self, key: str) -> MappingEntry | None:
        return next((each for each in self.root.entries if each.name == key), None)


def read_document(root: Path, relative: str, missing: str = "") -> tuple[Document | None, list[Problem]]:
    """The mapping in the file, and every problem of its form. `missing` is the remedy for a missing file."""
    text, problems = read_text(root, relative, missing)
    return (None, problems) if text is None else parse_document(text, relative)


def read_text(root: Path, relative: str, missing: str = "") -> tuple[str | None, list[Problem]]:
    """The text of the file with its line ends as they are, or the problem that keeps it from being read."""
    path = root / relative
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return None, [Problem(relative, 0, "", "is not a file", "Remove it, or name another.")]
        if found.st_size > MAXIMUM_BYTES:
            message = f"is larger than {MAXIMUM_BYTES // 1_000_000} MB"
            return None, [Problem(relative, 0, "", message, "This is no configuration file: name another.")]
        return read_regular(path, MAXIMUM_BYTES).decode("utf-8"), []
    except FileNotFoundError:
        return None, [Problem(relative, 0, "", "there is no such file", missing)]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return None, [Problem(relative, line, "", "is not UTF-8 text", "Save it again with the encoding UTF-8.")]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, [Problem(relative, 0, "", f"cannot be read: {reason}", "Check its permissions.")]


def parse_document(text: str, file: str) -> tuple[Document | None, list[Problem]]:
    body = text.removeprefix(BYTE_ORDER_MARK)
    plain = parse_plain(body)
    if plain is not None:
        return Document(file, plain), []
    node, problems = parse_nodes(body, file)
    if isinstance(node, MapNode):
        return Document(file, node), problems
    if not problems:
        problems = [_not_a_mapping(node, file)]
    return None, problems


def set_value(text: str, key: str, value: Value, file: str = "text") -> str:
    """`text` with the top-level `key` set to `value`: in place, or as a new last line.

    Raises ConfigurationError where the text cannot be read, or is written so that no safe change is found.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    body = text.removeprefix(BYTE_ORDER_MARK)
    node, problems = parse_nodes(body, file)
    if not problems and node is not None and not isinstance(node, MapNode) and not _is_empty(node):
        problems = [_not_a_mapping(node, file)]
    if problems:
        raise ConfigurationError(problems)
    root = node if isinstance(node, MapNode) else None
    entry = next((each for each in root.entries if each.name == key), None) if root else None
    changed = _replace(body, entry, value) if entry else _append(body, root, key, value)
    if changed is None or not _is_the_same_but_for(body, changed, key, value):
        line = entry.line if entry else 1
        remedy = f"Write `{key}: {render_scalar(value)}` by hand."
        raise ConfigurationError([Problem(file, line, key, "cannot be changed without touching other lines", remedy)])
    return mark + changed


def set_value_in_file(root: Path, relative: str, key: str, value: Value) -> None:
    """`set_value` on a file: written beside it and moved into place, so that it is whole at any time."""
    text, problems = read_text(root, relative)
    if text is None:
        raise ConfigurationError(problems)
    path = root / relative
    changed = set_value(text, key, value, relative).encode("utf-8")
    try:
        write_whole(path, changed, stat.S_IMODE(path.stat().st_mode))
    except OSError as error:
        raise StorageError(
            f"`{relative}` cannot be written: {error.strerror}.", "Check its permissions and the disk."
        ) from error


def render_scalar(value: Value, quote: str = "") -> str:
    """`value` as YAML on one line; `quote` is the style to keep where the value allows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if quote == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if not quote and _is_plain(value):
        return value
    return '"' + "".join(_escaped(each) for each in value) + '"'


def _is_plain(value: str) -> bool:
    """Safe without quotes, and text to every YAML reader (not a number, boolean, date or null)."""
    if not re.fullmatch(r"[A-Za-z_./$~\\](?:[\w./$~\\@+=%-]|:(?=[\w/\\])| (?=[\w./$(]))*", value, re.ASCII):
        return False
    words = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "~", "."}
    return value.lower() not in words and not re.fullmatch(r"\.(inf|nan|\d[\d_.e+-]*)", value.lower())


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    code = ord(character)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def _not_a_mapping(node: Node | None, file: str) -> Problem:
    line = node.place.line if node else 1
    if node is None or _is_empty(node):
        return Problem(file, line, "", "the file is empty", "Write `key: value` lines.")
    kind = "list" if isinstance(node, ListNode) else "single value"
    return Problem(file, line, "", f"the file is a {kind}, not a mapping", "Write `key: value` lines.")


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.is_null and not node.text


def _replace(text: str, entry: MappingEntry, value: Value) -> str | None:
    node, key_end = entry.value, entry.key.place.end
    start, end = node.place.start, node.place.end
    end = start + len(text[start:end].rstrip())  # block text ends, for the parser, after its line break
    style = node.style if isinstance(node, Scalar) and node.style in ("'", '"') and not entry.is_alias else ""
    rendered = render_scalar(value, style)
    colon = re.compile(r"\s*:").match(text, key_end)
    if colon is None:
        return None
    between = text[colon.end() : start]
    if "\n" in between or "#" in between:  # a comment stands between the key and its value: keep it, after the value
        return f"{text[: colon.end()]} {rendered}{between.rstrip()}{text[end:]}"
    space = between or ("" if end > start else " ")
    return f"{text[: colon.end()]}{space}{rendered}{text[end:]}"


def _append(text: str, root: MapNode | None, key: str, value: Value) -> str:
    written = f"{render_scalar(key)}: {render_scalar(value)}"
    if root is not None and root.is_flow:
        if not root.entries:
            return f"{text[: root.place.start]}{{{written}}}{text[root.place.end :]}"
        last = root.entries[-1].value.place.end
        if root.entries[0].key.style == '"':  # JSON: keep it JSON
            written = f"{render_scalar(key, chr(34))}: {render_scalar(value, chr(34))}"
        return f"{text[:last]}, {written}{text[last:]}"
    newline = "\r\n" if re.search(r"\r?\n", text + "\n")[0] == "\r\n" else "\n"  # type: ignore[index]  # it ends with one
    indentation = " " * root.place.column if root else ""
    tail = root.place.end if root else 0
    end_marker = re.compile(r"^\.\.\.(?=\s|$)", re.MULTILINE).search(text, tail)
    at = end_marker.start() if end_marker else len(text)
    before = text[:at]
    gap = "" if not before or before.endswith(("\n", "\r")) else newline
    return f"{before}{gap}{indentation}{written}{newline}{text[at:]}"


def _is_the_same_but_for(old: str, new: str, key: str, value: Value) -> bool:
    """The proof of the surgery: read again, `key` has the value and everything else is what it was."""
    before, _ = parse_nodes(old, "")
    after, problems = parse_nodes(new, "")
    if problems or not isinstance(after, MapNode):
        return False
    shapes = {each.name: _shape(each.value) for each in after.entries}
    kept = {each.name: _shape(each.value) for each in before.entries} if isinstance(before, MapNode) else {}
    wanted = render_scalar(value) if not isinstance(value, str) else value
    found = next((each.value for each in after.entries if each.name == key), None)
    if not isinstance(found, Scalar) or found.text != wanted or (isinstance(value, str) and found.is_null):
        return False
    shapes.pop(key, None)
    kept.pop(key, None)
    return shapes == kept


def _shape(node: Node) -> object:
    if isinstance(node, Scalar):
        return (node.text, node.is_null)
    if isinstance(node, ListNode):
        return [_shape(each) for each in node.items]
    return {each.name: _shape(each.value) for each in node.entries}
