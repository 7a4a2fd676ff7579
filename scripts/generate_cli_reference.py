"""Write `docs/reference/cli.md` from the commands themselves. `--check`: say whether it is up to date."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from holdfast.cli.main import SHORT_FORMS, command_tree

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
SHARED = ("--help", "--verbose", "--debug", "--project")
HEAD = """\
# Commands

Written by `make docs` from the commands themselves; do not edit.

Every command has `--help`, `--verbose` (say more) and `--debug` (show where an error comes from, as does
`HOLDFAST_DEBUG=1`). Commands about a project have `--project DIR`: exactly that folder is the project then. Without
it, it is the nearest folder with `aml_config`, else the top of the git repository, else the current folder.

Data goes to stdout, all else to stderr. How commands end: [exit codes](exit-codes.md).
"""


def main(arguments: list[str]) -> int:
    text = reference()
    if "--check" not in arguments:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is not what the commands say. Run: make docs", file=sys.stderr)
    return 1


def reference() -> str:
    root = command_tree()
    sections = [HEAD, short_forms()]
    sections += [section(path, context) for path, context in commands(root, "holdfast", None) if path != "holdfast"]
    return "\n".join(sections)


def short_forms() -> str:
    rows = [f"| `holdfast {name}` | {entry.help.rstrip('.')} |" for name, entry in SHORT_FORMS.items()]
    return "\n".join(["| short form | |", "|---|---|", *rows, ""])


def commands(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, click.Context]]:
    """Every command below `command`, groups before their commands, short forms left out."""
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    if command.hidden:
        return
    yield path, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not (parent is None and name in SHORT_FORMS):
                yield from commands(inner, f"{path} {name}", context)


def section(path: str, context: click.Context) -> str:
    level = "#" * (1 + path.count(" "))
    lines = [f"{level} `{path}`", "", help_text(context.command)]
    if not isinstance(context.command, click.Group):
        lines += ["", "```", usage(context), "```"]
        rows = option_rows(context)
        if rows:
            lines += ["", "| option | meaning |", "|---|---|", *rows]
    return "\n".join([*lines, ""])


def help_text(command: click.Command) -> str:
    """The help as Markdown: click's `\\b` paragraphs keep their lines, so they become blocks."""
    text = "\n\n".join(inspect.cleandoc(each or "").split("\f")[0] for each in (command.help, command.epilog))
    paragraphs = re.split(r"\n\s*\n", text.strip())
    shown = [f"```\n{part[2:].rstrip()}\n```" if part.startswith("\b\n") else part for part in paragraphs]
    return "\n\n".join(shown)


def usage(context: click.Context) -> str:
    return " ".join(context.get_usage().removeprefix("Usage: ").split())


def option_rows(context: click.Context) -> list[str]:
    rows = []
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        is_shared = parameter.opts[-1] in SHARED and not parameter.expose_value  # `import` has its own --project
        if record and isinstance(parameter, click.Option) and not is_shared:
            names, meaning = (cell.replace("|", "\\|") for cell in record)
            rows.append(f"| `{names}` | {' '.join(meaning.split())} |")
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
