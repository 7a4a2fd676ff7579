"""The shape of the source in figures: `scripts/shape.py [COMMIT]`, beside those of an earlier commit.

docs/shape.md has them, with those that only a reader can count.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from architecture.source_rules import Module, imports, read  # noqa: E402

_SOURCE = Path("src") / "holdfast"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main(commits: list[str]) -> None:
    columns = [("this tree", figures(ROOT / _SOURCE))]
    for commit in commits:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(
                ["git", "archive", commit, str(_SOURCE)], cwd=ROOT, capture_output=True, check=True
            )
            subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
            columns.insert(0, (commit, figures(Path(folder) / _SOURCE)))
    print("| | " + " | ".join(title for title, _ in columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for name in columns[-1][1]:
        print(f"| {name} | " + " | ".join(f"{found[name]:,}" for _, found in columns) + " |")


def figures(package: Path) -> Mapping[str, int]:
    modules = read(package)
    files = [module.path.stem for module in modules if module.path.name != "__init__.py"]
    classes = [
        node.name
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return {
        "modules": len(modules),
        "lines": sum(module.lines for module in modules),
        "folders of `farside/` that import each other": len(_knot(modules, "farside")),
        "folders of `workbench/` that import each other": len(_knot(modules, "workbench")),
        "modules named by a gerund": sum(name.endswith("ing") for name in files),
        "names of modules used twice": _repeated(files),
        "names of public classes used twice": _repeated(classes),
        "imports inside functions": sum(_inner_imports(module.tree) for module in modules),
    }


def _repeated(names: Iterable[str]) -> int:
    return sum(count > 1 for count in Counter(names).values())


def _inner_imports(tree: ast.Module) -> int:
    inside: set[ast.AST] = set()
    for function in ast.walk(tree):
        if isinstance(function, _FUNCTIONS):
            inside.update(node for node in ast.walk(function) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return len(inside)


def _knot(modules: list[Module], layer: str) -> set[str]:
    """Folders from which their own imports lead back to them."""
    arrows: dict[str, set[str]] = {}
    folders = {_folder(module.parts) for module in modules if len(module.parts) > 1 and module.layer == layer}
    for module in modules:
        if module.layer == layer and len(module.parts) > 2:
            for name in imports(module):
                to = _folder(tuple(name.split(".")[1:]))
                if name.startswith(f"holdfast.{layer}.") and to in folders and to != _folder(module.parts):
                    arrows.setdefault(_folder(module.parts), set()).add(to)
    return {folder for folder in arrows if folder in _reached(arrows, arrows[folder])}


def _folder(parts: tuple[str, ...]) -> str:
    return "/".join(parts[:2])


def _reached(arrows: Mapping[str, set[str]], start: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = list(start)
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left.extend(arrows.get(one, ()))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
