"""`pyproject.toml`: the packages that the project itself depends on, `[project] dependencies`; and `uv.lock` beside it.

The project itself is not installed: a run has its files already. Extras and groups are included where they are asked
for.
Settings of uv count as far as they can be said in a requirements file; one that would choose other packages and cannot
be said is an error, and names `uv.lock` as the way: packages that uv has chosen already, for every platform at once.
What a lock says for an installer comes out of `uv export` (`environments/uv_export.py`).
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.frozen import replace
from holdfast.project.documents import BYTE_ORDER_MARK, MAXIMUM_BYTES, read_text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, parse_python
from holdfast.project.packages_wish import GROUP
from holdfast.project.problems import Mistake, Problem, Severity, errors_in
from holdfast.project.project_parts import ProjectParts
from holdfast.project.requirement_lines import RequiredPackage, normalised, parse_package
from holdfast.project.requirements import RequirementLines, RequirementSource, read_python_version
from holdfast.regular_files import read_regular

Table = Mapping[str, Any]
"""What is inside a TOML file, as its parser gives it; nothing of it leaves this module."""


def read_pyproject(
    root: Path, relative: str, parts: Sequence[str] = ()
) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """What `[project]` asks for, and these extras and groups; None when the file is missing or has an error."""
    file, problems = _open_pyproject(root, relative)
    if file is None:
        return None, problems
    _read_indexes(file)
    _read_dependencies(file, parts)
    _read_settings(file)
    python, written = _python(file)
    ordered = sorted(file.lines.problems, key=lambda each: each.line)
    return (None if errors_in(ordered) else file.lines.spec(relative, python, written)), ordered


def is_project(root: Path, relative: str) -> bool:
    """Whether the file is there and is about a project, not only about tools."""
    file, problems = _open_pyproject(root, relative) if os.path.isfile(root / relative) else (None, [])
    return bool(problems) or (file is not None and bool(file.table("project") or file.table("tool", "poetry")))


def extras_in(root: Path, relative: str) -> dict[str, set[str]]:
    """Names of the packages in each extra; none where the file cannot be read."""
    file, _ = _open_pyproject(root, relative)
    found: dict[str, set[str]] = {}
    for name, lines in file.table("project", "optional-dependencies").items() if file is not None else ():
        parsed = [parse_package(each) for each in lines if isinstance(each, str)] if isinstance(lines, list) else []
        found[name] = {each.name for each in parsed if isinstance(each, RequiredPackage)}
    return found


def read_indexes(root: Path, relative: str) -> tuple[RequirementLines, str | None, Requirement | None]:
    """Where the packages of a lock come from, and the wish for a Python: all that a lock leaves to this file."""
    file, problems = _open_pyproject(root, relative)
    if file is None:
        lines = RequirementLines(root)
        lines.problems += problems
        return lines, None, None
    _read_indexes(file, is_locked=True)
    return (file.lines, *_python(file))


class _PyprojectFile:
    """The file while it is being read."""

    def __init__(self, root: Path, relative: str, text: str, content: Table) -> None:
        self.root, self.relative, self.text, self.content = root, relative, text, content
        self.lines = RequirementLines(root)
        self._line_of: dict[str, int] | None = None
        self._searches = 0

    def table(self, *keys: str) -> Table:
        found: Any = self.content
        for key in keys:
            found = found.get(key, {}) if isinstance(found, Mapping) else {}
        return found if isinstance(found, Mapping) else {}

    @cached_property
    def sources(self) -> Table:
        """Where packages come from, by their normalised names."""
        found: dict[str, object] = {}
        for name, each in self.table("tool", "uv", "sources").items():
            found.setdefault(normalised(name), each)
        return found

    def place(self, written: str, key: str, constrains: bool = False) -> RequirementSource:
        """A TOML parser tells no lines: the first one that has the words, between quotes if there is one."""
        if self._line_of is None:
            self._line_of = _quoted_words(self.text)
        line = self._line_of.get(written, 0) or self._line_that_has(written)
        return RequirementSource(self.relative, line, key, (), constrains)

    def _line_that_has(self, written: str) -> int:
        """Not for ever: what is not written as it is meant may be meant thousands of times."""
        self._searches += 1
        if not written or self._searches > _MOST_SEARCHES:
            return 0
        return next((number for number, line in enumerate(self.text.splitlines(), 1) if written in line), 0)

    def problem(self, written: str, key: str, message: str, remedy: str, severity: Severity = "error") -> None:
        self.lines.problem(self.place(written, key), message, remedy, severity)


_MOST_SEARCHES = 100


def _quoted_words(text: str) -> dict[str, int]:
    """The first line of all that stands between two quotes, be they of a kind or neighbours."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if '"' in line or "'" in line:
            of_a_kind = [double or single for double, single in re.findall(r"\"([^\"]*)\"|'([^']*)'", line)]
            for words in (*of_a_kind, *re.split(r"[\"']", line)[1:-1]):
                found.setdefault(words, number)
    return found


def _open_pyproject(root: Path, relative: str) -> tuple[_PyprojectFile | None, list[Problem]]:
    text, problems = read_text(root, relative, "Make one: uv init --bare")
    if text is None:
        return None, problems
    text = text.removeprefix(BYTE_ORDER_MARK)
    try:
        content = parse_toml(text)
    except ValueError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        message = re.sub(r"\(at [^()]*\)\Z", "", str(error)).rstrip().rstrip(".")
        line = int(found[1]) if found else len(text.splitlines())
        return None, [Problem(relative, line, "", f"is not TOML: {message}", "Correct this line or the one above.")]
    return _PyprojectFile(root, relative, text, content), []


def parse_toml(text: str) -> Table:
    """Raises ValueError."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_PARTS and re.sub(r"\"[^\"]*\"|'[^']*'", "", line).count(".") > _MOST_PARTS:
            raise ValueError(f"a key has too many parts (at line {number})")
    parser = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: Table = parser.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return found


_MOST_PARTS = 1000
"""Of a key, `a.b.c`: the parser takes the square of their number."""


def _read_dependencies(file: _PyprojectFile, parts: Sequence[str]) -> None:
    project = file.table("project")
    groups = _parts_of(file).options(parts)
    is_group = not isinstance(groups, Mistake) and bool(groups) and "--extra" not in groups
    has_poetry = bool(file.table("tool", "poetry", "dependencies"))
    if not project and has_poetry and not file.table("build-system").get("build-backend"):
        remedy = "Write a requirements file and name that: poetry export -o requirements.txt"
        file.problem("[tool.poetry.dependencies]", "tool.poetry", "is Poetry's own form, which is not read", remedy)
        return
    if not project and not is_group and not has_poetry:
        file.problem("", "project", "is missing", "Write `[project]` with `dependencies = [\"numpy\"]`.")  # fmt: skip
        return
    is_dynamic = "dependencies" in project.get("dynamic", ()) or not (project or is_group)
    if is_dynamic and not _read_dynamic(file, parts):
        extras = [each for each in parts if not each.startswith(GROUP)]
        file.lines.take_built(posixpath.dirname(file.relative), extras, file.place("dynamic", "project.dependencies"))
        parts = [each for each in parts if each.startswith(GROUP)]
    for written in _texts(file, project.get("dependencies", []), "project.dependencies"):
        _take_line(file, written, "project.dependencies")
    more = _parts_of(file).lines(parts)
    if isinstance(more, Mistake):
        file.problem("", "project", more.message, more.remedy)
        return
    for each in more:
        _take_line(file, each.text, each.key)


def _read_dynamic(file: _PyprojectFile, parts: Sequence[str]) -> bool:
    """The files that setuptools reads them from. False where only the project's build can say them."""
    dynamic = file.table("tool", "setuptools", "dynamic", "dependencies").get("file")
    names = [dynamic] if isinstance(dynamic, str) else dynamic
    if (
        not isinstance(names, list)
        or not names
        or ("optional-dependencies" in file.table("project")["dynamic"] and parts)
    ):
        return False
    for name in names:
        file.lines.take_file(posixpath.join(posixpath.dirname(file.relative), str(name)))
    return True


def _parts_of(file: _PyprojectFile) -> ProjectParts:
    project, old = file.table("project"), file.table("tool", "uv").get("dev-dependencies")
    groups = {**({"dev": old} if old else {}), **file.table("dependency-groups")}
    return ProjectParts(str(project.get("name", "")), file.table("project", "optional-dependencies"), groups)


def _take_line(file: _PyprojectFile, written: str, key: str) -> None:
    place = file.place(written, key)
    package = parse_package(written)
    source = None if isinstance(package, Mistake) else _source(file.sources.get(package.name))
    if source is None or isinstance(package, Mistake):
        file.lines.take(written, place)
    else:
        _take_source(file, package, source, place)


def _texts(file: _PyprojectFile, value: object, key: str) -> list[str]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    file.problem(key.rpartition(".")[2], key, "must be a list of texts", 'Write it like `["numpy", "pandas>=2"]`.')
    return []


def _source(found: object) -> Table | None:
    if isinstance(found, Mapping):
        return found
    if isinstance(found, list) and all(isinstance(each, Mapping) and "index" in each for each in found):
        return {"index": ""}  # one of several, by marker: all are asked
    return {"several": ""} if found is not None else None


def _take_source(file: _PyprojectFile, package: RequiredPackage, source: Table, place: RequirementSource) -> None:
    extras = f"[{package.extras}]" if package.extras else ""
    marker = f" ; {package.marker}" if package.marker else ""
    if "index" in source:
        file.lines.take(f"{package.name}{extras}{package.specifier}{marker}", place)
    elif "url" in source:
        file.lines.take(f"{package.name}{extras} @ {source['url']}{marker}", place)
    elif "git" in source:
        revision = source.get("rev") or source.get("tag") or source.get("branch")
        address = f"git+{source['git']}" + (f"@{revision}" if revision else "")
        address += f"#subdirectory={source['subdirectory']}" if "subdirectory" in source else ""
        file.lines.take(f"{package.name}{extras} @ {address}{marker}", place)
    elif "path" in source:
        file.lines.take(f"{package.name}{extras} @ {source['path']}{marker}", place)
    else:
        kind = next(iter(source), "it")
        remedy = "Write a single source, or lock the project (uv lock) and name `uv.lock`."
        file.lines.problem(place, f"the source of `{package.name}` (`{kind}`) cannot be used here", remedy)


def _read_indexes(file: _PyprojectFile, is_locked: bool = False) -> None:
    uv = file.table("tool", "uv")
    for index in uv.get("index", []) if isinstance(uv.get("index", []), list) else []:
        address = str(index.get("url", "")) if isinstance(index, Mapping) else ""
        option = "--index-url" if index.get("default") else "--extra-index-url"
        place = file.place(address, "tool.uv.index")
        if index.get("explicit") and not is_locked:
            message = f"the index `{index.get('name', '')}` is asked for every package, not only for those that name it"
            file.lines.problem(
                place, message, "To keep it apart, lock the project (uv lock) and name `uv.lock`.", "warning"
            )
        file.lines.take(f"{option} {address}", place)
    single = uv.get("index-url")
    if isinstance(single, str):
        file.lines.take(f"--index-url {single}", file.place(single, "tool.uv.index-url"))
    for key in ("extra-index-url", "find-links"):
        for each in _texts(file, uv.get(key, []), f"tool.uv.{key}"):
            file.lines.take(f"--{key} {each}", file.place(each, f"tool.uv.{key}"))
    if uv.get("no-index"):
        file.lines.take("--no-index", file.place("no-index", "tool.uv.no-index"))


def _read_settings(file: _PyprojectFile) -> None:
    uv = file.table("tool", "uv")
    for each in _texts(file, uv.get("constraint-dependencies", []), "tool.uv.constraint-dependencies"):
        file.lines.take(each, file.place(each, "tool.uv.constraint-dependencies", constrains=True))
    if uv.get("prerelease") == "allow":
        file.lines.take("--pre", file.place("prerelease", "tool.uv.prerelease"))
    if uv.get("override-dependencies"):
        remedy = "Lock the project (uv lock) and name `uv.lock`."
        key = "tool.uv.override-dependencies"
        file.problem("override-dependencies", key, "cannot be used without a lock", remedy)
    for key in _UNUSED:
        if key in uv:
            remedy = "To have it count, lock the project (uv lock) and name `uv.lock`."
            file.problem(key, f"tool.uv.{key}", "is not used", remedy, "warning")


_UNUSED = ("exclude-newer", "resolution", "dependency-metadata", "index-strategy", "no-build-isolation-package")


def _python(file: _PyprojectFile) -> tuple[str | None, Requirement | None]:
    pinned, problems = read_python_version(file.root, posixpath.dirname(file.relative))
    file.lines.problems += problems
    if pinned:
        return parse_python(pinned.text), pinned
    written = file.table("project").get("requires-python")
    if written is None:
        return None, None
    place = file.place(str(written), "project.requires-python")
    python = parse_python(str(written).strip().rstrip(","))
    if python is None:
        message = f"`{written}` is not a version of Python"
        file.lines.problem(place, message, 'Write it like `requires-python = ">=3.10"`.')
    return python, Requirement(str(written), place.line, file.relative)


LARGEST_LOCK = 50 * MAXIMUM_BYTES


def read_uv_lock(root: Path, relative: str, parts: Sequence[str] = ()) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """A spec whose `lock_file` is the lock; what it says is still to be exported."""
    beside = project_of(relative)
    remedy = "Make it: uv lock"
    if not os.path.isfile(root / relative):
        return None, [Problem(relative, 0, "", "there is no such file", remedy)]
    if os.path.getsize(root / relative) > LARGEST_LOCK:
        return None, [Problem(relative, 0, "", "is too large to be a lock", remedy)]
    if not os.path.isfile(root / beside):
        message = f"there is no `{beside}` beside it"
        return None, [Problem(relative, 0, "", message, "A lock is read together with its project: put it there.")]
    lines, python, written = read_indexes(root, beside)
    lines.problems += _other_wishes(root, relative)
    options = _export_options(root, beside, parts)
    if isinstance(options, Mistake):
        lines.problems.append(Problem(beside, 0, "project", options.message, options.remedy))
        return None, lines.problems
    if errors_in(lines.problems):
        return None, lines.problems
    spec = lines.spec(relative, python, written)
    return replace(spec, lock_file=relative, lock_parts=options), lines.problems


def _export_options(root: Path, project: str, parts: Sequence[str]) -> tuple[str, ...] | Mistake:
    file, _ = _open_pyproject(root, project)
    return _parts_of(file).options(parts) if file is not None else ()


def _other_wishes(root: Path, relative: str) -> list[Problem]:
    """An error where the project is none; a warning where it asks for other packages than the lock was made for."""
    file, _ = _open_pyproject(root, project_of(relative))
    if file is None:
        return []  # said already
    project = file.table("project")
    if not project:
        remedy = "Write `[project]` with `dependencies`, then: uv lock"
        return [Problem(file.relative, 0, "project", "is missing, so the lock beside it belongs to nothing", remedy)]
    locked = _locked_wishes(read_regular(root / relative, LARGEST_LOCK).decode("utf-8", "replace"))
    if locked is None or "dependencies" in project.get("dynamic", ()):
        return []
    sources = {normalised(each) for each in file.table("tool", "uv", "sources")}
    parsed = [parse_package(each) for each in project.get("dependencies", ()) if isinstance(each, str)]
    wanted = [each for each in parsed if isinstance(each, RequiredPackage)]
    new = {_wish(each.name, "" if each.location else each.specifier, sources) for each in wanted}
    old = {_wish(name, specifier, sources) for name, specifier in locked}
    if len(wanted) < len(parsed) or new == old:
        return []
    names = ", ".join(f"`{name}`" for name in sorted({name for name, _ in new ^ old})[:5])
    message = f"the lock is older than {file.relative}, which asks for something else of {names}; what is locked counts"
    return [Problem(relative, 0, "", message, "Make it anew: uv lock", "warning")]


def _locked_wishes(text: str) -> list[tuple[str, str]] | None:
    """Names and specifiers that the project had when it was locked; None where the lock does not tell. Only that part
    of it is parsed: a lock may be long."""
    blocks = re.split(r"^\[\[package\]\]\s*$", text, flags=re.MULTILINE)
    own = [each for each in blocks if re.search(r'^source = \{ (?:virtual|editable) = "\." \}', each, re.MULTILINE)]
    if len(own) != 1:
        return None
    try:
        metadata = parse_toml(own[0]).get("package", {}).get("metadata", {})
        wishes = [each for each in metadata.get("requires-dist", []) if "extra ==" not in each.get("marker", "")]
        return [(str(each["name"]), str(each.get("specifier", ""))) for each in wishes]
    except (ValueError, LookupError, AttributeError, TypeError):
        return None


def _wish(name: str, specifier: str, sources: set[str]) -> tuple[str, frozenset[str]]:
    """Without the order and the spaces of a specifier; of a package with a source of its own, the name alone."""
    clauses = re.sub(r"[\s()]", "", specifier).split(",") if normalised(name) not in sources else ()
    return normalised(name), frozenset(each for each in clauses if each)


def project_of(lock: str) -> str:
    """The `pyproject.toml` that the lock was made from."""
    return posixpath.join(posixpath.dirname(lock), "pyproject.toml")
