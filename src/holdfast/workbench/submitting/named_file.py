"""A file of the project that a command line names, and what starts it: Python, its `#!` line, or itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

from holdfast.errors import ProjectError, nearest
from holdfast.frozen import dataclass
from holdfast.regular_files import open_regular
from holdfast.shown_text import one_line, pasted

PYTHONS = ("python", "python3")
_SUFFIXES = (".py", ".pyw", ".sh", ".bash", ".zsh", ".ipynb")
_PYTHON = re.compile(r"python[23]?(\.\d+)?")
_BEGINNING = 256
"""Bytes of a file that tell what it is; Linux reads a `#!` line up to there."""


@dataclass(frozen=True)
class CommandFolder:
    """Where a command line is typed: a folder of the project `root`, relative to it."""

    root: Path
    folder: str

    def path(self, word: str) -> Path:
        named = word if "\0" in word else os.path.expanduser(word)  # of no account: it raises
        return Path(os.path.normpath(self.root / self.folder / named))

    def inside(self, word: str) -> str:
        """Relative to the project; as it is, if it lies outside. Empty for an empty word."""
        path = self.path(word)
        return path.relative_to(self.root).as_posix() if word and path.is_relative_to(self.root) else word


@dataclass(frozen=True)
class NamedFile:
    """`path` is relative to the project, `typed` to the working folder. `opening`: the words before it."""

    path: str
    typed: str
    opening: tuple[str, ...] = ()
    is_python: bool = True


def is_script(word: str) -> bool:
    return word.endswith(_SUFFIXES)


def has_file(place: CommandFolder, word: str) -> bool:
    path = place.path(word)
    return path.is_relative_to(place.root) and os.path.isfile(path)


def find_file(place: CommandFolder, word: str, for_python: bool = False) -> NamedFile:
    """Raises ProjectError if there is none in the project, or nothing can start it. `for_python`: another word says
    what starts it."""
    full = place.path(word)
    if not full.is_relative_to(place.root):
        raise ProjectError(
            f"The script `{word}` lies outside the project `{place.root}`.",
            "Move it into the project's folder, or submit from the folder that it belongs to.",
        )
    if not os.path.isfile(full):
        raise _no_script(word, full)
    path, typed = full.relative_to(place.root).as_posix(), os.path.relpath(full, place.root / place.folder)
    typed = word if typed == os.path.normpath(word) else typed
    typed = f"./{typed}" if typed.startswith("-") else typed  # an option, to what starts it
    if for_python or full.suffix in (".py", ".pyw"):
        return NamedFile(path, typed)
    return _started_by_itself(full, NamedFile(path, typed))


def _started_by_itself(full: Path, file: NamedFile) -> NamedFile:
    beginning = _beginning(full)
    if beginning.startswith(b"#!"):
        return _by_its_line(beginning, file)
    if full.suffix == ".ipynb":
        return file
    direct = file.typed if "/" in file.typed else f"./{file.typed}"
    if os.access(full, os.X_OK):
        if _PYTHON.fullmatch(full.name):
            raise ProjectError(
                f"`{file.path}` is a Python of an environment, which does not ship.",
                "Activate its environment and leave this word out, or name it as `pythonLocation` of the target.",
            )
        is_program = b"\0" in beginning
        return NamedFile(file.path, direct, () if is_program else ("sh",), False)
    if full.suffix in (".sh", ".bash", ".zsh"):
        return NamedFile(file.path, file.typed, (full.suffix[1:],), False)
    raise ProjectError(
        f"`{file.path}` is neither a Python file nor executable.",
        f"If it holds Python: holdfast submit python {pasted(file.typed)}\nIf it is a program: chmod +x "
        f"{pasted(file.typed)}",
    )


def _by_its_line(beginning: bytes, file: NamedFile) -> NamedFile:
    """As the kernel reads it, but for Python, which is the run's own."""
    line = beginning[2:].split(b"\n")[0].decode("utf-8", "replace").strip()
    program, _, option = line.partition(" ")
    words = option.split()
    named = os.path.basename(program)
    if named == "env" and words:
        named, words = _after_env(words)
    if _PYTHON.fullmatch(named):
        return NamedFile(file.path, file.typed, tuple(words))
    opening = (program, option.strip()) if option.strip() else (program,)
    return NamedFile(file.path, file.typed, opening, False)


def _after_env(words: list[str]) -> tuple[str, list[str]]:
    """What `env` starts, and the words for that."""
    left = words[1:] if words[0] == "-S" else words
    return (left[0], left[1:]) if left else ("", [])


def _beginning(path: Path) -> bytes:
    try:
        with os.fdopen(open_regular(path), "rb") as source:
            return source.read(_BEGINNING)
    except OSError as error:
        raise ProjectError(f"`{path}` cannot be read: {error.strerror}.", "Check its permissions.") from error


def _no_script(script: str, full: Path) -> ProjectError:
    if os.path.isdir(full):
        inside = [one_line(f"{script.rstrip('/')}/{name}") for name in _python_files(full)]
        hint = f"Name the script in it: {', '.join(inside[:10])}" if inside else "It has no Python files."
        return ProjectError(f"`{script}` is a folder, not a script.", hint)
    if os.path.lexists(full):
        return ProjectError(f"`{script}` is not a regular file.", "Name a script.")
    names = _python_files(full.parent)
    guess = nearest(full.stem, [name[:-3] for name in names])
    hint = f"That folder has: {', '.join(map(one_line, names[:10]))}" if names else "That folder has no Python files."
    return ProjectError(f"There is no script `{script}`.", f"Did you mean `{one_line(guess)}.py`?" if guess else hint)


def _python_files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.py")) if os.path.isdir(folder) else []
