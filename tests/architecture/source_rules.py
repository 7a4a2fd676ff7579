"""The rules of the source: who may import whom, no cycles, sizes. Each rule returns its complaints.

The map is `docs/architecture.md`; `RANKS` below is its line of arrows.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

RANKS = {
    "errors": 0,
    "frozen": 0,
    "installed_programs": 1,
    "regular_files": 1,
    "shown_text": 1,
    "whole_files": 1,
    "written_files": 1,
    "given_files": 1,
    "codec": 1,
    "model": 2,
    "plan": 3,
    "project": 4,
    "hosts": 5,
    "containers": 6,
    "environments": 6,
    "snapshots": 6,
    "history": 6,
    "workbench": 7,
    "presenting": 8,
    "cli": 9,
    "__main__": 10,
}
STAIRS = {
    "farside": (
        "system",
        "machine",
        "environments",
        "gpu",
        "gpu.judge",
        "gpu.lease",
        "gpu.watch",
        "containers",
        "engines",
        "run",
        "operations",
        "agent",
        "main",
    ),
    "workbench": ("reach", "following", "submitting", "records", "environments", "machines"),
}
"""Folders inside a layer, from the bottom up: each may import those before it. `gpu` is the folder itself, without its
subfolders."""
FROM_THE_FAR_SIDE = {
    "hosts": ("system.frames", "system.digests", "system.ownership", "system.layout"),
    "errors": ("system.harmless",),
    "regular_files": ("system.harmless",),
    "shown_text": ("system.harmless",),
    "history": ("gpu.samples", "gpu.judge.evidence", "system.folders", "system.whole_lines"),
    "plan": ("gpu.request",),
    "project": (
        "gpu.request",
        "system.closed_home",
        "system.layout",
        "system.ownership",
        "system.real_paths",
        "system.reserved_names",
    ),
    "snapshots": ("system.real_paths", "system.reserved_names"),
    "workbench": ("gpu.request", "system.folders", "system.real_paths", "system.reserved_names", "system.whole_lines"),
    "cli": ("system.real_paths",),
    "presenting": ("engines.engine", "gpu.request"),
    "environments": (
        "environments.installer_errors",
        "environments.drivers",
        "environments.torch_builds",
        "environments.locks",
        "environments.pins",
        "environments.settings",
        "system.ownership",
        "system.real_paths",
    ),
}
"""Parts of the far side that the near side uses too: both ends of a wire, and knowledge about installers. All others
run only on the host."""
MODULE_LINES, FUNCTION_LINES, PARAMETERS = 400, 40, 6
PURE = {"presenting": {"__future__", "collections", "enum", "errno", "json", "math", "re", "shlex", "time", "typing"}}
"""Modules of Python that layers for words may import: values in, words out, and no terminal, file or process."""
INNER_IMPORTS = 249
"""Imports inside functions, at most; may only go down (docs/decisions/0019-lazy-imports-at-a-few-doors.md)."""
TWINS = {"EndedProcess", "Verdict", "Volume"}
"""Public classes that both sides have: one value, as the far side writes it and as the near side reads it, field by
field."""
SAME_SEAM = {"main"}
"""Names of modules that may be used twice: the entry of a program."""
NOT_OUR_FILES = {"engines/NAME.py", "setup.py", "train.py"}
"""Python files that comments may name and the source does not have: placeholders and scripts of users."""
TEMPLATES = ("project", "templates")  # what a user's project starts from: a user's code, not ours
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file: its names below the package (`("history", "index")`; none for the package) and its syntax."""

    parts: tuple[str, ...]
    path: Path
    tree: ast.Module
    lines: int

    @property
    def name(self) -> str:
        return ".".join(("holdfast", *self.parts))

    @property
    def layer(self) -> str:
        return self.parts[0] if self.parts else "__init__"


def read(package: Path) -> list[Module]:
    """All modules below the folder `package`, which is `src/holdfast` or a made-up equivalent."""
    return list(one_by_one(package))


def one_by_one(package: Path) -> Iterator[Module]:
    """For rules that read each module once: hundreds of trees in memory cost more to collect than to parse."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[:2] != TEMPLATES:
            text = path.read_text(encoding="utf-8")
            names = parts[:-1] if parts[-1] == "__init__" else parts
            yield Module(names, path, ast.parse(text), text.count("\n"))


def imports(module: Module) -> Iterator[str]:
    """Dotted names of all imports anywhere in the file. `from a import b` is `a.b`: b may be a module."""
    package = list(module.parts) if module.path.name == "__init__.py" else list(module.parts[:-1])
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            climbed = ["holdfast", *package][: len(package) + 2 - node.level] if node.level else []
            base = ".".join([*climbed, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def forbidden_arrows(modules: list[Module]) -> list[str]:
    """Imports that do not point down, and imports of the far side except `FROM_THE_FAR_SIDE`."""
    complaints = []
    for module in modules:
        for name in imports(module):
            target = name.split(".")[1:2]
            if name.split(".")[0] != "holdfast" or _stands_alone(module) or not target or target[0] == module.layer:
                continue
            allowed = _is_used_here(module.layer, name) if target == ["farside"] else True
            if target[0] in RANKS:
                allowed = module.layer in RANKS and RANKS[target[0]] < RANKS[module.layer]
            if not allowed:
                complaints.append(f"{module.name} may not import {name}")
    unranked = {module.layer for module in modules} - set(RANKS) - {"__init__", "farside"}
    return complaints + [f"{layer} has no place in the order of layers" for layer in sorted(unranked)]


def climbing_arrows(modules: list[Module]) -> list[str]:
    """Imports inside a layer of `STAIRS` that do not point down its stairs."""
    complaints = []
    for module in modules:
        stairs = STAIRS.get(module.layer)
        if stairs is None or len(module.parts) == 1 or _is_shim(module):
            continue
        step = _step(module.parts[1:], stairs)
        if step is None:
            complaints.append(f"{module.name} has no place on the stairs of {module.layer}")
            continue
        for name in imports(module):
            target = name.split(".")
            below = _step(target[2:], stairs) if target[:2] == ["holdfast", module.layer] else None
            if below is not None and below > step:
                complaints.append(f"{module.name} may not import {name}")
    return complaints


def _step(parts: Sequence[str], stairs: tuple[str, ...]) -> int | None:
    """Of a module, by its names below the layer: the most exact folder counts."""
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in stairs:
            return stairs.index(".".join(parts[:length]))
    return None


def foreign_imports(modules: list[Module]) -> list[str]:
    """What runs in a user's environment (far side, in-run API, shim) imports only Python's own and itself."""
    complaints = []
    for module in filter(_stands_alone, modules):
        own = "holdfast.farside." if module.layer == "farside" and not _is_shim(module) else None
        for name in imports(module):
            is_ours = (own and f"{name}.".startswith(own)) or (_is_shim(module) and _is_shim_import(name))
            if not is_ours and name.split(".")[0] not in {*sys.stdlib_module_names, "__future__"}:
                complaints.append(f"{module.name} may not import {name}")
    return complaints


def cycles(modules: list[Module]) -> list[str]:
    """Modules that import each other, directly or through others."""
    names = {module.name for module in modules}
    graph = {
        module.name: {_module_of(name, names) for name in imports(module)} - {module.name, ""} for module in modules
    }
    while True:  # a module that imports none of the rest, or that none of the rest imports, is on no cycle
        imported = set().union(*graph.values())
        kept = {name for name, targets in graph.items() if targets & graph.keys() and name in imported}
        if kept == graph.keys():
            break
        graph = {name: graph[name] & kept for name in kept}
    return [f"cycle: {name} ↔ {', '.join(sorted(targets))}" for name, targets in sorted(graph.items())]


def sizes(modules: list[Module]) -> list[str]:
    """Modules and functions that are too long, and functions with too many parameters."""
    complaints = []
    for module in modules:
        if module.lines > MODULE_LINES:
            complaints.append(f"{module.name} has {module.lines} lines; at most {MODULE_LINES}")
        for function in (node for node in ast.walk(module.tree) if isinstance(node, Function)):
            where, lines = f"{module.name}:{function.lineno} {function.name}", _length(function)
            if lines > FUNCTION_LINES:
                complaints.append(f"{where} has {lines} lines; at most {FUNCTION_LINES}")
            if _parameters(function) > PARAMETERS and not _is_command(module, function):
                complaints.append(f"{where} has {_parameters(function)} parameters; at most {PARAMETERS}")
    return complaints


def impure_imports(modules: list[Module]) -> list[str]:
    """Layers of `PURE` import only what makes no input or output."""
    return [
        f"{module.name} may not import {name}"
        for module in modules
        if module.layer in PURE
        for name in imports(module)
        if name.split(".")[0] not in {"holdfast", *PURE[module.layer]}
    ]


def inner_imports(modules: list[Module]) -> list[str]:
    """More imports inside functions than the limit."""
    count = sum(
        isinstance(node, (ast.Import, ast.ImportFrom))
        for module in modules
        for function in ast.walk(module.tree)
        if isinstance(function, Function)
        for node in _own_nodes(function)
    )
    if count > INNER_IMPORTS:
        return [f"{count} imports are inside functions; at most {INNER_IMPORTS}: put them on top"]
    return []


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Without those of functions inside of it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if not isinstance(node, Function):
            yield node
            left += ast.iter_child_nodes(node)


def repeated_names(modules: list[Module]) -> list[str]:
    """Public classes and modules that share a name; `TWINS` may, if they have the same fields."""
    classes: dict[str, list[tuple[Module, tuple[str, ...]]]] = {}
    files: dict[str, list[Module]] = {}
    for module in modules:
        if module.path.name != "__init__.py" and module.parts[-1] not in SAME_SEAM:
            files.setdefault(module.parts[-1], []).append(module)
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append((module, _fields(node)))
    return [
        f"{name} is a class of {' and '.join(module.name for module, _ in found)}"
        for name, found in classes.items()
        if len(found) > 1 and (name not in TWINS or len({fields for _, fields in found}) > 1)
    ] + [
        f"{name} is the name of {' and '.join(module.name for module in found)}"
        for name, found in files.items()
        if len(found) > 1
    ]


def _fields(node: ast.ClassDef) -> tuple[str, ...]:
    annotated = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    return tuple(target.id for target in annotated if isinstance(target, ast.Name))


def slow_values(modules: list[Module]) -> list[str]:
    """The standard library's dataclasses, which are slow to make: use `holdfast.frozen`."""
    return [
        f"{module.name} imports {name}"
        for module in modules
        if module.layer != "frozen"
        for name in imports(module)
        if name.split(".")[0] == "dataclasses"
    ]


_COMMENT, _NAMED_FILE = re.compile(r"#.*"), re.compile(r"`([\w./-]+\.py)`")


def missing_files(modules: list[Module]) -> list[str]:
    """Docstrings and comments that name a Python file in backticks, with folders before it or without, that does not
    exist."""
    ends = {"/".join(module.path.parts[-depth:]) for module in modules for depth in range(1, len(module.path.parts))}
    return [
        f"{module.name} names `{name}`, which does not exist"
        for module in modules
        for text in _comments(module)
        for name in _NAMED_FILE.findall(text)
        if name not in ends and name not in NOT_OUR_FILES
    ]


def _comments(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if is_string(node):
            yield ast.literal_eval(node.value)
    yield from _COMMENT.findall(module.path.read_text(encoding="utf-8"))


_PLACES = re.compile(
    r"/(?:root|workspace|work/(?:main|shared))/|/home/(?!me\b|user\b|ada\b|\w*\$)\w+/|/Users/\w+/"
    r"|(?:pypi|pythonhosted|anaconda)\.org"
)


def private_places(files: dict[str, str]) -> list[str]:
    """Private paths of a machine and hosts of package registries. `files` are names and their texts."""
    return [
        f"{name}:{number} names `{found[0]}`"
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        for found in _PLACES.finditer(line)
    ]


def _stands_alone(module: Module) -> bool:
    return module.layer in ("__init__", "farside")


def _is_used_here(layer: str, name: str) -> bool:
    parts = FROM_THE_FAR_SIDE.get(layer, ())
    return any(f"{name}.".startswith(f"holdfast.farside.{part}.") for part in parts)


def _is_shim(module: Module) -> bool:
    return any(part in ("shim", "azureml") for part in module.parts)


def _is_shim_import(name: str) -> bool:
    first, _, rest = name.partition(".")
    return first == "azureml" or (first == "holdfast" and "." not in rest)


def _module_of(name: str, names: set[str]) -> str:
    """The module that an import reads: `holdfast.errors` for `holdfast.errors.UsageError`. Else empty."""
    while name and name not in names:
        name = name.rpartition(".")[0]
    return "" if name == "holdfast" else name


def _length(function: Function) -> int:
    """Lines from `def` to the end, without the docstring, which does not make a function long."""
    first = function.body[0]
    words = (first.end_lineno or 0) - first.lineno + 1 if is_string(first) else 0
    return (function.end_lineno or 0) - function.lineno + 1 - words


def is_string(node: ast.AST) -> TypeGuard[ast.Expr]:
    """A statement that is nothing else, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _parameters(function: Function) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _is_command(module: Module, function: Function) -> bool:
    """A click command: its parameters are the options that a person types, not a seam between modules."""
    return module.layer == "cli" and any("command" in ast.dump(each) for each in function.decorator_list)
