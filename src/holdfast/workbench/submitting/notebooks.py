"""A notebook as it is submitted: whether it can run, its parameters, and the packages that run it."""

from __future__ import annotations

import ast
import json
import keyword
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import ProjectError, UsageError
from holdfast.frozen import dataclass, replace
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.requirement_lines import normalised
from holdfast.regular_files import NotJson, read_json, text_if_there
from holdfast.shown_text import one_line, pasted

SUFFIX = ".ipynb"
PACKAGES = ("nbclient", "ipykernel")
_LARGEST = 256_000_000
_PYTHONS = ("python", "python3", "ipython")
_TAG = "parameters"
_ASSIGNED = re.compile(r"^([^\W\d]\w*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class Parameters:
    """`lines` assign the values. `cautions` say what may not be meant."""

    lines: tuple[str, ...]
    cautions: tuple[str, ...] = ()


def read_parameters(root: Path, notebook: str, typed: Sequence[str]) -> Parameters:
    """`typed` are words `NAME=VALUE`, `notebook` is relative to the project. Raises ProjectError for a notebook that
    cannot run, UsageError for words that assign nothing."""
    values = dict(map(_parameter, typed))
    cells = _code_cells(root, notebook)
    lines = tuple(f"{name} = {literal}" for name, literal in values.items())
    return Parameters(lines, tuple(_cautions(notebook, cells, tuple(values))))


def words_after(notebook: str, arguments: Sequence[str]) -> Iterator[str]:
    """The `NAME=VALUE` of each `-p` after the notebook. Raises UsageError for any other word."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word in ("-p", "--parameter") and words:
            yield words.pop(0)
        elif word.startswith("-p") and word != "-p" and not word.startswith("--"):
            yield word[2:]
        elif word.startswith("--parameter="):
            yield word.partition("=")[2]
        else:
            raise UsageError(
                f"A notebook takes only parameters, and `{word}` is not one.",
                f"Give values like this: holdfast submit {pasted(notebook)} -p NAME=VALUE\n"
                "Options of submit come before the notebook.",
            )


# ---- values ----


def _parameter(word: str) -> tuple[str, str]:
    """The name, and its value as Python writes it."""
    name, has_value, value = word.partition("=")
    name = name.strip()
    if not has_value:
        raise UsageError(f"The parameter `{word}` has no value.", "Write it like this: -p NAME=VALUE")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"`{name}` is not a name in Python.", "Write it like this: -p NAME=VALUE")
    return name, repr(parse_value(value))


def parse_value(text: str) -> Any:
    """A literal of Python or JSON; else the text itself."""
    for parse in (ast.literal_eval, _json):
        try:
            value = parse(text)
            if ast.literal_eval(repr(value)) == value:  # no nan, no inf: they have no literal
                return value
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return text


def _json(text: str) -> Any:
    return json.loads(text)


def _cautions(notebook: str, cells: Sequence[_Cell], names: Sequence[str]) -> Iterator[str]:
    if not names:
        return
    tagged = next((cell for cell in cells if _TAG in cell.tags), None)
    if tagged is None:
        yield (
            f"No cell of {one_line(notebook)} is tagged `{_TAG}`, so yours are set before the first cell. "
            "A cell that sets them again overrides them."
        )
        return
    known = set(_ASSIGNED.findall(tagged.source))
    for name in (name for name in names if name not in known):
        yield f"The cell of {one_line(notebook)} that is tagged `{_TAG}` does not set `{name}`."


# ---- the file ----


@dataclass(frozen=True)
class _Cell:
    source: str
    tags: tuple[str, ...]


def _code_cells(root: Path, notebook: str) -> list[_Cell]:
    try:
        found = read_json(root / notebook, _LARGEST)
    except NotJson as error:
        reason = "it is empty" if not os.path.getsize(root / notebook) else str(error)
        raise _damaged(notebook, reason) from error
    except OSError as error:
        raise ProjectError(
            f"`{notebook}` cannot be read: {error.strerror}.",
            f"Check its permissions. If it is large: jupyter nbconvert --clear-output --inplace {pasted(notebook)}",
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("nbformat"), int):
        raise _damaged(notebook, "it has no `nbformat`")
    if found["nbformat"] < 4:
        raise ProjectError(
            f"`{notebook}` uses notebook format {found['nbformat']}, which is too old.",
            f"Convert it: jupyter nbconvert --to notebook --inplace {pasted(notebook)}",
        )
    _require_python(notebook, found.get("metadata"))
    raw = found.get("cells")
    cells = [_cell(each) for each in raw if _is_code(each)] if isinstance(raw, list) else []
    cells = [each for each in cells if each.source.strip()]
    if not cells:
        raise ProjectError(
            f"`{notebook}` has no code, so nothing would run.", "If you just wrote some, save the notebook first."
        )
    return cells


def _require_python(notebook: str, metadata: Any) -> None:
    """The kernel's name does not count: it is the run's own Python."""
    about = metadata if isinstance(metadata, dict) else {}
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        language = about[key].get(name) if isinstance(about.get(key), dict) else None
        if isinstance(language, str) and language and language.lower() not in _PYTHONS:
            raise ProjectError(
                f"`{notebook}` is a notebook in `{one_line(language)}`. Holdfast runs notebooks in Python.",
                "To run it with a kernel that is installed there: "
                f"holdfast submit jupyter execute {pasted(os.path.basename(notebook))}",
            )


def _is_code(cell: Any) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code"


def _cell(cell: dict[str, Any]) -> _Cell:
    source, metadata = cell.get("source", ""), cell.get("metadata")
    lines = [str(each) for each in source] if isinstance(source, list) else [str(source)]
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return _Cell("".join(lines), tuple(str(each) for each in tags) if isinstance(tags, list) else ())


def _damaged(notebook: str, reason: str) -> ProjectError:
    return ProjectError(
        f"`{notebook}` cannot be read as a notebook: {one_line(reason)}.",
        "Open it in Jupyter and save it again, or restore it from git.",
    )


# ---- packages ----


def with_packages(spec: EnvironmentSpec, notebook: str, root: Path) -> EnvironmentSpec:
    """The spec with what runs notebooks, as far as it names none of that. Where every package is pinned by its hash,
    none can be added: raises ProjectError if one is missing."""
    texts = [each.text for each in (*spec.conda, *spec.pip)]
    named = {_name(text) for text in texts}
    missing = tuple(name for name in PACKAGES if name not in named)
    if not spec.lock_file and not spec.locked and not any("--hash=" in text for text in texts):
        return replace(spec, pip=(*spec.pip, *(Requirement(name, 1, notebook) for name in missing)))
    locked = text_if_there(root / spec.lock_file, _LARGEST) if spec.lock_file else spec.locked
    lacking = [name for name in missing if not re.search(rf'^(name = ")?{name}("|\b)', locked, re.MULTILINE)]
    if lacking:
        add = f"Add them: uv add {' '.join(PACKAGES)}"
        raise ProjectError(
            f"`{spec.file}` lacks {' and '.join(lacking)}, which the notebook needs to run.",
            add if spec.lock_file else f"Name them in {spec.file}, with their hashes as all others.",
        )
    return spec


def _name(requirement: str) -> str:
    """Of `ipykernel[extra]>=6` and `conda-forge::ipykernel=6`."""
    found = re.match(r"(?:[\w.-]+::)?([\w.-]+)", requirement.strip())
    return normalised(found[1]) if found else ""
