"""Rules about text for people: all of it goes out through `cli/terminal.py`, and words to paste are quoted. Each rule
returns its complaints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from architecture.source_rules import Module

DOOR = "holdfast.cli.terminal"
_WRITERS = {"write", "writelines", "echo", "secho", "print", "confirm", "prompt", "getpass", "input"}
_THROUGH = {"terminal.write", "os.write"}
"""Names that are the door itself, or write to a descriptor what the door has made: the alternate screen."""

QUOTERS = {"pasted", "_over_there", "shlex.quote", "shlex.join"}
_COMMAND = re.compile(
    r"(?:\bholdfast [a-z]+|\bchmod |\bchown |\bssh-keygen |\bsed -i |\bdocker [a-z]+ |\bgit [a-z]+ -|\brm -|\bcd "
    r"|\bexport \w+=| -[a-z] | --[a-z-]+ )(?:(?![,;.)] |\n).)*\Z"
)
KNOWN: dict[str, set[str]] = {
    "holdfast.cli.computetarget": {"kind or 'remote'", "other", "'remotedocker' if kind in OVER_SSH else 'docker'"},
    "holdfast.cli.environment": {"where"},
    "holdfast.cli.history": {"listing.total"},
    "holdfast.cli.project": {"_typed(project.root, here)"},
    "holdfast.cli.shell_command": {"given"},
    "holdfast.farside.agent": {"error"},
    "holdfast.farside.containers.room": {"value.replace(\"'\", \"'\\\\''\")"},
    "holdfast.hosts.ssh_errors": {"offending[2]"},
    "holdfast.snapshots.ignore": {"AMLIGNORE"},
    "holdfast.workbench.machines.first_login": {"quoted", "file", "question.fingerprint"},
    "holdfast.workbench.machines.machine_findings": {"device.index"},
    "holdfast.workbench.machines.shell_session": {"named"},
    "holdfast.workbench.records.clean": {"it"},
    "holdfast.workbench.submitting.run_plan": {"known"},
}
"""What may stand in a command unquoted, by module: numbers, words of ours, what is quoted already, and lines of files,
which no shell reads."""


def unguarded_output(modules: list[Module]) -> list[str]:
    """Writing that the one door does not see, which makes harmless what goes out to people."""
    return [
        f"{module.name}:{node.lineno} writes past {DOOR}: {ast.unparse(node.func)}"
        for module in modules
        if module.layer == "cli" and module.name != DOOR
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and _last_name(node.func) in _WRITERS
        and ast.unparse(node.func) not in _THROUGH
        and not _is_of_rich(node)
    ]


def unquoted_words(modules: list[Module]) -> list[str]:
    """Values that stand in a command for people and were not quoted."""
    return [
        f"{module.name}:{value.lineno} has {ast.unparse(value)} unquoted in `{found[0].strip()}`"
        for module in modules
        for node in ast.walk(module.tree)
        for text, value in _values(node)
        if (found := _COMMAND.search(text)) and not _is_quoted(value, module)
    ]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_of_rich(node: ast.Call) -> bool:
    """Its cells are harmless already: their widths are those of what is shown."""
    return ast.unparse(node.func).startswith("Console(")


def _values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Each value that a text takes, with the text before it."""
    text = ""
    if isinstance(node, ast.JoinedStr):
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                yield text, each.value
                text += "X"
            else:
                text += str(ast.literal_eval(each))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        for part, value in zip(str(node.left.value).split("%s"), values, strict=False):
            text += part
            yield text, value
            text += "X"


def _is_quoted(value: ast.expr, module: Module) -> bool:
    """A list of words is quoted word by word."""
    written = ast.unparse(value)
    return written in KNOWN.get(module.name, ()) or written.partition("(")[0] in QUOTERS or "map(pasted," in written
