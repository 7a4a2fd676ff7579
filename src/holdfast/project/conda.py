"""`conda_dependencies.yml`: the Python packages that a managed environment is made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.project.documents import read_document
from holdfast.project.fields import Fields
from holdfast.project.nodes import Entry, ListNode, MapNode, Scalar
from holdfast.project.problems import Problem, errors_in

KEYS = ("name", "channels", "dependencies", "prefix", "variables", "platforms")
"""`prefix` is what `conda env export` adds; it says nothing about what is needed."""


@dataclass(frozen=True)
class Requirement:
    """One item as written, and its line."""

    text: str
    line: int


@dataclass(frozen=True)
class CondaDependencies:
    """`python` is a version (`3.11`) or a specifier (`>=3.10`), None when the file names none.

    `conda` has neither Python nor pip: the one is `python`, the other is how `pip` gets installed.
    """

    name: str | None = None
    python: str | None = None
    channels: tuple[str, ...] = ()
    conda: tuple[Requirement, ...] = ()
    pip: tuple[Requirement, ...] = ()


def read_conda(root: Path, relative: str) -> tuple[CondaDependencies | None, list[Problem]]:
    """The dependencies, None when the file is missing or has an error."""
    missing = "Write one with a line `dependencies:`, or set `userManagedEnvironment: true` in the compute target."
    document, problems = read_document(root, relative, missing)
    if document is None:
        return None, problems
    fields = Fields(document, problems)
    fields.check_keys(KEYS, {"pip": "Write it as an item of `dependencies:`, as `- pip:`."})
    if fields.has("variables"):
        fields.warn("variables", "not used", "Write them under `EnvironmentVariables:` in the run configuration.")
    items = _Items()
    _read_items(fields, items)
    channels = fields.texts("channels", "conda-forge") or ()
    found = CondaDependencies(
        name=fields.text("name"),
        python=items.python,
        channels=tuple(each.text for each in channels),
        conda=tuple(items.conda),
        pip=tuple(items.pip),
    )
    ordered = fields.in_order()
    return (None if errors_in(ordered) else found), ordered


class _Items:
    def __init__(self) -> None:
        self.python: str | None = None
        self.python_line = 0
        self.conda: list[Requirement] = []
        self.pip: list[Requirement] = []


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


def _read_pip(fields: Fields, entries: Iterable[Entry], items: _Items) -> None:
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
                items.pip.append(Requirement(item.text.strip(), item.place.line))


def _take(fields: Fields, item: Scalar, items: _Items) -> None:
    text = item.text.strip()
    name, specifier = _split(text)
    if name == "pip":
        return
    if name != "python":
        items.conda.append(Requirement(text, item.place.line))
        return
    if items.python_line:
        message = f"Python is named twice, first in line {items.python_line}"
        fields.error("dependencies", message, "Keep one.", item)
        return
    items.python_line = item.place.line
    items.python = _python_version(fields, item, specifier)


def _split(text: str) -> tuple[str, str]:
    """`conda-forge::python =3.6` → `python`, `=3.6`."""
    found = re.match(r"(?:[^\s=<>!~]+::)?([A-Za-z0-9_.-]+)\s*(.*)", text)
    return (found[1].lower(), found[2]) if found else (text, "")


def _python_version(fields: Fields, item: Scalar, specifier: str) -> str | None:
    if not specifier or specifier == "*":
        return None
    exact = re.fullmatch(r"={0,2}\s*(\d+(?:\.\d+)*)(?:\.?\*)?(?:[=\s]\S+)?", specifier, re.ASCII)
    if exact:
        return exact[1]
    one = r"(?:[<>]=?|[!~=]=)\s*\d+(?:\.\d+)*(?:\.\*)?"
    if re.fullmatch(rf"{one}(?:\s*,\s*{one})*", specifier, re.ASCII):
        return re.sub(r"\s+", "", specifier)
    message = f"`{item.text}` is not a version of Python"
    fields.error("dependencies", message, "Write it like `python=3.11`.", item)
    return None
