"""Calls that the source does not make: each rule takes its modules and returns complaints."""

from __future__ import annotations

import ast

from architecture.source_rules import Module

WITH_NAMES_OF_OTHERS = tuple(
    f"holdfast.{each}" for each in ("project.", "snapshots.", "workbench.submitting.", "workbench.environments.")
)


def prints(modules: list[Module]) -> list[str]:
    return [
        f"{module.name}:{node.lineno} prints"
        for module in modules
        if module.layer != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def half_private_folders(modules: list[Module]) -> list[str]:
    """Folders made with a mode together with those above, which the mode is not for: use `make_private`."""
    return [
        f"{module.name}:{node.lineno} makes the folders above as the umask says"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if _gives_mode_to_the_last(node.func.attr, node)
    ]


def _gives_mode_to_the_last(name: str, call: ast.Call) -> bool:
    given = {each.arg for each in call.keywords}
    if name == "makedirs":
        return "mode" in given or len(call.args) > 1
    return name == "mkdir" and "parents" in given and ("mode" in given or bool(call.args))


def raising_questions(modules: list[Module]) -> list[str]:
    """`Path.exists` and the like where names come from a project: they raise for a name that no file can have, as
    `Path.expanduser` does for an account that does not exist. `os.path` answers. What a folder lists is an `entry`."""
    return [
        f"{module.name}:{node.lineno} asks {ast.unparse(node)}; os.path raises nothing"
        for module in modules
        if module.name.startswith(WITH_NAMES_OF_OTHERS)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and not node.keywords  # `follow_symlinks`: it is of a listing
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"exists", "is_file", "is_dir", "is_symlink", "expanduser"}
        and ast.unparse(node.func.value) not in {"os.path", "entry"}
    ]
