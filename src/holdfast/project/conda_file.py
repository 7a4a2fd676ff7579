"""`conda_dependencies.yml`: the Python packages that a managed environment is made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from holdfast.frozen import replace
from holdfast.project.documents import read_document
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, parse_python
from holdfast.project.fields import Fields
from holdfast.project.nodes import ListNode, MapNode, MappingEntry, Scalar
from holdfast.project.problems import Problem, errors_in
from holdfast.project.requirements import RequirementLines, RequirementSource

KEYS = ("name", "channels", "dependencies", "prefix", "variables", "platforms")
"""`prefix` is what `conda env export` adds; it says nothing about what is needed."""


def read_conda(root: Path, relative: str) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """What the file asks for, None when it, or a file that it names, is missing or has an error."""
    missing = "Write one with a line `dependencies:`, or set `userManagedEnvironment: true` in the compute target."
    document, problems = read_document(root, relative, missing)
    if document is None:
        return None, problems
    fields = Fields(document, problems)
    fields.check_keys(KEYS, {"pip": "Write it as an item of `dependencies:`, as `- pip:`."})
    fields.text("name")  # said to be wrong where it is; it names nothing here
    if fields.has("variables"):
        fields.warn("variables", "not used", "Write them under `EnvironmentVariables:` in the run configuration.")
    items = _Items(root)
    _read_items(fields, items)
    lines = items.lines
    channels = [lines.concealer.conceal(each.text.strip()) for each in fields.texts("channels", "conda-forge") or ()]
    lines.check_hashes()
    # What is wrong here comes in the order of the lines, then what is wrong in files that this one names.
    fields.problems += [each for each in lines.problems if each.file == relative]
    ordered = fields.in_order() + [each for each in lines.problems if each.file != relative]
    spec = lines.spec(relative, items.python, items.python_from)
    spec = replace(spec, channels=tuple(channels), conda=tuple(items.conda))
    return (None if errors_in(ordered) else spec), ordered


class _Items:
    def __init__(self, root: Path) -> None:
        self.python: str | None = None
        self.python_from: Requirement | None = None
        self.conda: list[Requirement] = []
        self.lines = RequirementLines(root)


def _read_items(fields: Fields, items: _Items) -> None:
    value = fields.value("dependencies")
    if value is None:
        return
    if not isinstance(value, ListNode):
        remedy = "Write `- python=3.11` and `- pip:` on lines of their own below it; packages go below `- pip:`."
        fields.error("dependencies", "must be a list", remedy)
        return
    for item in value.items:
        if isinstance(item, MapNode):
            _read_pip(fields, item.entries, items)
        elif not isinstance(item, Scalar):
            fields.error("dependencies", "an item must be a single value", "Write it like `- python=3.11`.", item)
        elif item.is_null or not item.text.strip():
            fields.error("dependencies", "an item is empty", "Remove the line, or write a package.", item)
        elif not item.text.isprintable():
            fields.error("dependencies", "an item holds a line break", "Write one package per line.", item)
        else:
            _take(fields, item, items)


def _read_pip(fields: Fields, entries: Iterable[MappingEntry], items: _Items) -> None:
    for entry in entries:
        if entry.name != "pip":
            message = f"`{entry.name}:` is not understood here"
            fields.error("dependencies", message, "Only `- pip:` may have a list of its own.", entry.key)
            continue
        if isinstance(entry.value, Scalar) and entry.value.is_null:
            continue
        for item in fields.texts_in("pip", entry.value, "numpy"):
            if not item.text.strip() or not item.text.isprintable():
                fields.error("pip", "an item is empty or holds a line break", "Write one package per line.", item)
            else:
                items.lines.take(item.text, RequirementSource(fields.document.file, item.place.line, "pip"))


def _take(fields: Fields, item: Scalar, items: _Items) -> None:
    text = item.text.strip()
    name, specifier = _split(text)
    if name == "pip":
        return
    asked = Requirement(items.lines.concealer.conceal(text), item.place.line, fields.document.file)
    if name != "python":
        items.conda.append(asked)
        return
    if items.python_from:
        message = f"Python is named twice, first in line {items.python_from.line}"
        fields.error("dependencies", message, "Keep one.", item)
        return
    items.python_from = asked
    if specifier and specifier != "*":
        items.python = parse_python(specifier)
        if items.python is None:
            message = f"`{asked.text}` is not a version of Python"
            fields.error("dependencies", message, "Write it like `python=3.11`.", item)


def _split(text: str) -> tuple[str, str]:
    """`conda-forge::python =3.6` → `python`, `=3.6`."""
    found = re.match(r"(?:[^\s=<>!~]+::)?([A-Za-z0-9_.-]+)\s*(.*)", text)
    return (found[1].lower(), found[2]) if found else (text, "")
