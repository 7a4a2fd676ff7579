"""Write `docs/reference/protocol.md` from the far side's table of operations and the client's methods. `--check`: say
whether it is up to date."""

from __future__ import annotations

import ast
import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from holdfast.farside.operations.table import OPERATIONS
from holdfast.hosts import client
from holdfast.hosts.client import Client

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "protocol.md"
HEAD = """\
# Protocol

Written by `make docs` from `farside/operations/table.py` and `hosts/client.py`; do not edit.

Both ends send frames: a JSON object, and a body of bytes where there is one (`farside/system/frames.py`). A request has
`id`, `op` and the fields below; fields with `?` may be left out. The answer has the same `id`, and `ok` with what the
operation returns, or `error` with a `kind`, a `message` and a `hint`. Pushes come by themselves, with `push` and `run`.
The far side that answers is always of the same build as the client, so answers are read strictly.
"""


def main(arguments: list[str]) -> int:
    text = reference()
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is not what the code says. Run: make docs", file=sys.stderr)
    return 1


def reference() -> str:
    answers = dict(shapes())
    sections = [HEAD, "## Operations\n", *(section(name, answers[name]) for name in OPERATIONS)]
    named = {each.__name__: each for shape in answers.values() for each in classes(shape)}
    sections += ["## Shapes of answers\n", *(described(named[name]) for name in sorted(named))]
    return "\n".join(sections)


def shapes() -> Iterator[tuple[str, Any]]:
    """Each operation of the client, and what its answer becomes; `{name: shape}` if the client reads one key."""
    for node in ast.walk(ast.parse(inspect.getsource(client))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            name, *words = node.args
            if isinstance(name, ast.Constant) and node.func.attr in ("_send", "_request", "_value"):
                shape = eval(ast.unparse(words[node.func.attr == "_value"]), vars(client))  # noqa: S307 - of our own source
                yield str(name.value), {ast.literal_eval(words[0]): shape} if node.func.attr == "_value" else shape


def section(name: str, shape: Any) -> str:
    operation, method = OPERATIONS[name], getattr(Client, name.replace("-", "_"))
    fields = ", ".join(f"`{each}`" for each in operation.takes) or "none"
    where = f"farside/{operation.module.replace('.', '/')}.py"
    rows = [f"### {name}\n", *_paragraph(method), f"- fields: {fields}", f"- answer: {shown(shape)}"]
    return "\n".join([*rows, f"- client: `{name.replace('-', '_')}`; far side: `{where}`", ""])


def described(cls: Any) -> str:
    if issubclass(cls, Enum):
        return f"### {cls.__name__} (shape)\n\n{', '.join(f'`{each.value}`' for each in cls)}\n"
    kind = "A list: " if issubclass(cls, tuple) else ""
    hints = typing.get_type_hints(cls)
    fields = ", ".join(f"`{name}` {shown(hints[name])}" for name in cls.__match_args__)
    return "\n".join([f"### {cls.__name__} (shape)\n", *_paragraph(cls), f"{kind}{fields}\n"])


def classes(shape: Any) -> Iterator[Any]:
    """All Holdfast classes in it, at any depth."""
    for each in shape.values() if isinstance(shape, dict) else typing.get_args(shape):
        yield from classes(each)
    if isinstance(shape, type) and shape.__module__.startswith("holdfast."):
        yield shape
        if not issubclass(shape, Enum):
            for hint in typing.get_type_hints(shape).values():
                yield from classes(hint)


def shown(shape: Any) -> str:
    """As JSON terms."""
    if isinstance(shape, dict):
        return ", ".join(f"`{name}` {shown(each)}" for name, each in shape.items())
    inner = typing.get_args(shape)
    if shape is Any:
        return "that it is done"
    if shape is type(None):
        return "null"
    if typing.get_origin(shape) is tuple:
        return f"list of {shown(inner[0])}" if inner[-1] is Ellipsis else f"[{', '.join(map(shown, inner))}]"
    if typing.get_origin(shape) is Mapping:
        return f"object of {shown(inner[1])}"
    if inner:
        return " or ".join(map(shown, inner))
    words = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return words.get(shape) or f"[{shape.__name__}](#{shape.__name__.lower()}-shape)"


def _paragraph(of: Any) -> list[str]:
    text = of.__doc__ if of.__doc__ and not of.__doc__.startswith(f"{getattr(of, '__name__', '')}(") else ""
    return [" ".join(text.split()) + "\n"] if text else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
