"""The rules that the source is held to: who may import whom, no cycles, sizes. Each returns its complaints.

The map is `docs/architecture.md`; `RANKS` below is its line of arrows.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RANKS = {
    "errors": 0,
    "frozen": 0,
    "model": 1,
    "plan": 2,
    "project": 3,
    "hosts": 4,
    "engines": 5,
    "containers": 5,
    "environments": 5,
    "snapshots": 5,
    "history": 5,
    "workbench": 6,
    "cli": 7,
    "__main__": 8,
}
FROM_THE_FAR_SIDE = {
    "hosts": ("frames", "prefix", "digests"),
    "history": ("gpu.watching.samples",),
    "environments": ("environments.complaints", "environments.drivers", "environments.locks", "environments.settings"),
}
"""Parts of the far side that are used here too: both ends of a wire, and what is known of an installer. All others run
over there only."""
MODULE_LINES, FUNCTION_LINES, PARAMETERS = 400, 40, 6
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
    """All modules below the folder `package`, which is `src/holdfast` or a made-up one like it."""
    return list(one_by_one(package))


def one_by_one(package: Path) -> Iterator[Module]:
    """For rules that look at each module once: hundreds of trees kept at a time cost more to collect than to parse."""
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
    """Imports that do not point down, and imports of the far side but for `FROM_THE_FAR_SIDE`."""
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
    """Modules that import each other, directly or around corners."""
    names = {module.name for module in modules}
    graph = {
        module.name: {_module_of(name, names) for name in imports(module)} - {module.name, ""} for module in modules
    }
    while True:  # what imports nothing that is left, or is imported by nothing that is left, is on no cycle
        imported = set().union(*graph.values())
        kept = {name for name, targets in graph.items() if targets & graph.keys() and name in imported}
        if kept == graph.keys():
            break
        graph = {name: graph[name] & kept for name in kept}
    return [f"cycle: {name} ↔ {', '.join(sorted(targets))}" for name, targets in sorted(graph.items())]


def sizes(modules: list[Module]) -> list[str]:
    """Modules and functions that have grown too long, and functions that want too much."""
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


def prints(modules: list[Module]) -> list[str]:
    return [
        f"{module.name}:{node.lineno} prints"
        for module in modules
        if module.layer != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def slow_values(modules: list[Module]) -> list[str]:
    """The standard library's dataclasses, which take long to make: `holdfast.frozen` has them."""
    return [
        f"{module.name} imports {name}"
        for module in modules
        if module.layer != "frozen"
        for name in imports(module)
        if name.split(".")[0] == "dataclasses"
    ]


def undocumented(modules: list[Module]) -> list[str]:
    """Files without a docstring; an empty `__init__.py` needs none."""
    return [
        f"{module.name} has no docstring"
        for module in modules
        if module.tree.body and not ast.get_docstring(module.tree)
    ]


_PLACES = re.compile(
    r"/(?:root|workspace|work/(?:main|shared))/|/home/(?!me\b|user\b|ada\b|\w*\$)\w+/|/Users/\w+/"
    r"|(?:pypi|pythonhosted|anaconda)\.org"
)


def private_places(files: dict[str, str]) -> list[str]:
    """Paths of somebody's machine and hosts of package registries. `files` are names and their texts."""
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
    """Lines from `def` to the end, without the docstring: words about a function do not make it long."""
    first = function.body[0]
    is_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    words = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - words


def _parameters(function: Function) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _is_command(module: Module, function: Function) -> bool:
    """A click command: its parameters are the options that a person types, not a seam between modules."""
    return module.layer == "cli" and any("command" in ast.dump(each) for each in function.decorator_list)
