"""`spark_dependencies.yml`: configuration, repositories and packages for PySpark runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import nearest
from holdfast.frozen import dataclass, field
from holdfast.project.documents import read_document
from holdfast.project.fields import Fields
from holdfast.project.nodes import ListNode, MapNode, Node, Scalar
from holdfast.project.problems import Problem, errors_in

KEYS = ("configuration", "repositories", "packages")
_PARTS = ("group", "artifact", "version")
_FORM = "Write `group:`, `artifact:` and `version:`."


@dataclass(frozen=True)
class SparkPackage:
    group: str
    artifact: str
    version: str


@dataclass(frozen=True)
class SparkDependencies:
    configuration: Mapping[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    packages: tuple[SparkPackage, ...] = ()


def read_spark(root: Path, relative: str) -> tuple[SparkDependencies | None, list[Problem]]:
    """The dependencies, None when the file is missing or has an error."""
    document, problems = read_document(root, relative, "Write one, or name another as `SparkDependenciesFile`.")
    if document is None:
        return None, problems
    fields = Fields(document, problems)
    fields.check_keys(KEYS)
    repositories = fields.texts("repositories", "https://host/maven") or ()
    found = SparkDependencies(
        configuration=_configuration(fields),
        repositories=tuple(each.text for each in repositories),
        packages=tuple(_packages(fields)),
    )
    ordered = fields.in_order()
    return (None if errors_in(ordered) else found), ordered


def _configuration(fields: Fields) -> Mapping[str, str]:
    found = {}
    for entry in fields.pairs("configuration"):
        if not isinstance(entry.value, Scalar):
            key = f"configuration.{entry.name}"
            fields.error(key, "must be a single value", f"Write `{entry.name}: value` on one line.", entry.key)
        elif not entry.value.is_null:
            found[entry.name] = entry.value.text
    return found


def _packages(fields: Fields) -> list[SparkPackage]:
    value = fields.value("packages")
    if value is None:
        return []
    if not isinstance(value, ListNode):
        fields.error("packages", "must be a list", f"Begin each package with `-`. {_FORM}")
        return []
    found = [_package(fields, item) for item in value.items]
    return [each for each in found if each is not None]


def _package(fields: Fields, item: Node) -> SparkPackage | None:
    if not isinstance(item, MapNode):
        fields.error("packages", "an item must be a mapping", _FORM, item)
        return None
    values: dict[str, str] = {}
    for entry in item.entries:
        if entry.name not in _PARTS:
            guess = nearest(entry.name, _PARTS)
            fields.error(f"packages.{entry.name}", "unknown key", f"Write `{guess}`." if guess else _FORM, entry.key)
        elif isinstance(entry.value, Scalar) and entry.value.text and not entry.value.is_null:
            values[entry.name] = entry.value.text
    for part in _PARTS:
        if part not in values:
            fields.error("packages", f"a package has no `{part}`", _FORM, item)
    return SparkPackage(**values) if len(values) == len(_PARTS) else None
