"""Extras and dependency groups of a project: their lines, with those of the parts that they include.

A part that is wanted is an extra or, with `group:` before it or where there is no extra of the name, a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.frozen import dataclass
from holdfast.project.packages_wish import GROUP
from holdfast.project.problems import Mistake
from holdfast.project.requirement_lines import normalised, parse_package

Table = Mapping[str, Any]


@dataclass(frozen=True)
class PartLine:
    """A line that a part asks for, and the key in the file that it stands below."""

    text: str
    key: str


class ProjectParts:
    """What a `pyproject.toml` has of them, or a `setup.cfg` in the same form. `name` is the project's."""

    def __init__(self, name: str, extras: Table, groups: Table) -> None:
        self._name = normalised(name)
        self._extras = {normalised(each): lines for each, lines in extras.items()}
        self._groups = {normalised(each): lines for each, lines in groups.items()}
        self._seen: set[tuple[str, str]] = set()

    def lines(self, parts: Sequence[str]) -> tuple[PartLine, ...] | Mistake:
        """What these parts ask for, each line once. A part may name itself in a circle."""
        found: list[PartLine] = []
        for part in parts:
            kind = self.kind(part)
            if isinstance(kind, Mistake):
                return kind
            found += self._extra(kind[1]) if kind[0] == "extra" else self._group(kind[1])
        return tuple(dict.fromkeys(found))

    def options(self, parts: Sequence[str]) -> tuple[str, ...] | Mistake:
        """The parts as `uv export` wants them."""
        words: list[str] = []
        for part in parts:
            kind = self.kind(part)
            if isinstance(kind, Mistake):
                return kind
            words += [f"--{kind[0]}", kind[1]]
        return tuple(words)

    def kind(self, part: str) -> tuple[str, str] | Mistake:
        """`extra` or `group`, and the normalised name."""
        name, is_group = normalised(part.removeprefix(GROUP)), part.startswith(GROUP)
        if name in self._extras and not is_group:
            return "extra", name
        if name in self._groups:
            return "group", name
        every = [
            *(f"`{each}`" for each in sorted(self._extras)),
            *(f"`{GROUP}{each}`" for each in sorted(self._groups)),
        ]
        what = "group" if is_group else "extra and no group"
        return Mistake(
            f"there is no {what} `{name}`", f"Available: {', '.join(every)}." if every else "There are none."
        )

    def _extra(self, name: str) -> Iterator[PartLine]:
        for text in self._new("extra", name, self._extras):
            package = parse_package(text)
            if not isinstance(package, Mistake) and package.name == self._name and package.extras:
                for each in package.extras.split(","):
                    yield from self._extra(normalised(each))
            else:
                yield PartLine(text, f"project.optional-dependencies.{name}")

    def _group(self, name: str) -> Iterator[PartLine]:
        for line in self._new("group", name, self._groups):
            if isinstance(line, Mapping):
                yield from self._group(normalised(str(line.get("include-group", ""))))
            else:
                yield PartLine(str(line), f"dependency-groups.{name}")

    def _new(self, kind: str, name: str, tables: Table) -> list[Any]:
        """The lines of one that was not asked for yet."""
        if (kind, name) in self._seen:
            return []
        self._seen.add((kind, name))
        lines = tables.get(name)
        allowed = (str, Mapping) if kind == "group" else (str,)
        return [each for each in lines if isinstance(each, allowed)] if isinstance(lines, list) else []
