"""Runs the commands of the documentation, and compares their output with what the pages show.

A fenced `console` or `bash` block is run if the line above it is `<!-- run -->`, or `<!-- run: exit 3 -->` if its last
command must exit with 3. In `console` blocks, lines with `$ ` are typed and the others are the output; `bash` blocks
are typed whole. All blocks of a page share one shell, so `cd` and `export` last. In the output, `…` stands for
anything, and alone on a line for any number of lines; run ids, times and widths may differ.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MARK = re.compile(r"<!-- run(?:: exit (\d+))? -->")
_NORMAL = [
    (re.compile(r"\b[\w.-]+_\d{13}\b"), "<run>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC)?"), "<time>"),
    (re.compile(r"\b\d+:\d\d:\d\d(\.\d+)?\b|\b\d+(\.\d+)? ?(ms|s|min)\b"), "<duration>"),
    (re.compile(r"([-=─━])\1{2,}"), r"\1\1\1"),
    (re.compile(r"[ \t]+"), " "),
]


@dataclass(frozen=True)
class Example:
    """One command, its place, its expected exit code, and its expected output (None: not shown)."""

    line: int
    command: str
    code: int = 0
    shown: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Answer:
    code: int
    output: str


def collect(text: str) -> list[Example]:
    """The commands of all marked blocks of a Markdown text, in order."""
    examples: list[Example] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        mark = _MARK.fullmatch(line.strip())
        if not mark:
            continue
        fence = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if fence not in ("```console", "```bash"):
            raise ValueError(f"line {number + 1}: <!-- run --> must stand right above a console or bash block")
        end = lines.index("```", number + 2)
        block = lines[number + 2 : end]
        found = _console(block, number + 3) if fence == "```console" else [Example(number + 3, "\n".join(block))]
        last = found[-1]
        examples += [*found[:-1], Example(last.line, last.command, int(mark[1] or 0), last.shown)]
    return examples


def run(examples: list[Example], folder: Path, environment: Mapping[str, str], timeout: float) -> list[Answer]:
    """Type all examples into one shell that starts in `folder`, up to the first unexpected exit code."""
    records = folder.parent / f"{folder.name}-records"
    records.mkdir()
    script = "\n".join(_step(example, records / str(number)) for number, example in enumerate(examples))
    subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script],
        cwd=folder,
        env=dict(environment),
        timeout=timeout,
        check=False,
    )
    answers = []
    for number in range(len(examples)):
        code = records / f"{number}.code"
        if not code.exists():
            break
        output = (records / f"{number}.out").read_text(encoding="utf-8", errors="replace")
        answers.append(Answer(int(code.read_text()), output))
    return answers


def complaint(example: Example, answer: Answer) -> str:
    """Empty if the answer matches the documentation."""
    what = f"line {example.line}: $ {example.command}"
    if answer.code != example.code:
        return f"{what}\nexit code {answer.code}, expected {example.code}\n{answer.output}"
    if example.shown is not None and not matches(example.shown, answer.output):
        return f"{what}\nshown:\n" + "\n".join(example.shown) + f"\n\nreally:\n{answer.output}"
    return ""


def matches(shown: tuple[str, ...], output: str) -> bool:
    really = "".join(f"{_normal(line)}\n" for line in output.rstrip().splitlines())
    pattern = "".join("(?:.*\n)*" if line.strip() == "…" else f"{_pattern(line)}\n" for line in shown)
    return re.fullmatch(pattern, really) is not None


def page_environment(python: Path) -> dict[str, str]:
    """The environment of a reader: ours, with `holdfast` and its Python first on PATH."""
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path}


def _console(block: list[str], first: int) -> list[Example]:
    examples: list[Example] = []
    shown: list[str] = []
    for offset, line in enumerate([*block, "$ "]):
        if not line.startswith("$ "):
            if not examples:
                raise ValueError(f"line {first + offset}: a console block begins with a line of `$ `")
            last = examples[-1]
            if last.command.endswith("\\") and not shown:
                examples[-1] = Example(last.line, f"{last.command}\n{line.removeprefix('> ')}")
            else:
                shown.append(line)
            continue
        if examples:
            last = examples[-1]
            examples[-1] = Example(last.line, last.command, 0, tuple(shown) if "".join(shown).strip() else None)
        shown = []
        if line.strip() != "$":
            examples.append(Example(first + offset, line[2:]))
    return examples


def _step(example: Example, record: Path) -> str:
    out, code = shlex.quote(f"{record}.out"), shlex.quote(f"{record}.code")
    typed = f"{{ {example.command}\n}} >{out} 2>&1 </dev/null"
    return f"{typed}; r=$?; echo $r >{code}; [ $r = {example.code} ] || exit 1"


def _normal(line: str) -> str:
    for pattern, replacement in _NORMAL:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in _normal(line).split("…"))
