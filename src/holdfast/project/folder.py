"""The project as a folder: finding it, its id and name, its `.holdfast/`, and the names that stand for files in
`aml_config/`."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from holdfast.errors import ProjectError, StorageError, UsageError
from holdfast.frozen import dataclass, replace

CONFIGURATION_FOLDER = "aml_config"
BUILTIN = "local"
"""Always there: a folder without any file still runs on this machine."""
_STATE_FOLDER = ".holdfast"
IDENTITY_FILE = "project.json"
_IDENTITY_FORMAT = 1

_HALF_WRITTEN_SECONDS = 2.0
"""How long another process may take between making the identity's file and filling it."""


@dataclass(frozen=True)
class Project:
    """`id` is 32 hexadecimal digits, empty before `ensure_identity`. `is_bare`: without `aml_config/`."""

    root: Path
    id: str
    name: str
    is_bare: bool

    @property
    def state_directory(self) -> Path:
        return self.root / _STATE_FOLDER


def find_project(start: Path) -> Project:
    """The nearest folder at or above `start` with `aml_config/`, else with an identity; else `start`, bare.

    A folder above is never taken for anything else: `~/.holdfast` is this machine's own and has no identity.
    """
    here = Path(os.path.abspath(start))
    if not os.path.isdir(here):
        raise ProjectError(f"`{here}` is not a folder.", "Change to the project's folder, or make it.")
    candidates = (here, *here.parents)
    for folder in candidates:
        if os.path.isdir(folder / CONFIGURATION_FOLDER):
            return _project(folder, is_bare=False)
    for folder in candidates:
        if os.path.isfile(folder / _STATE_FOLDER / IDENTITY_FILE):
            return _project(folder, is_bare=True)
    return _project(here, is_bare=True)


def ensure_identity(project: Project, home: Path | None = None) -> Project:
    """The project with its id, made on first use. Two processes at once end with the same one.

    `home` is the user's home directory, where given: see `ensure_state_directory`.
    """
    if project.id:
        return project
    ensure_state_directory(project, home)
    path = project.state_directory / IDENTITY_FILE
    try:
        _create_once(path, render_identity(new_id()))
    except OSError as error:
        raise _cannot_write(path, error) from error
    found = _read_identity(path)
    if not found.id:
        raise ProjectError(f"`{path}` has no id.", "Delete the file; the next command makes a new one.")
    return replace(project, id=found.id)


def share_identity(project: Project) -> None:
    """Let `aml_config/` carry the project's id, so that a copy of the project elsewhere finds the same runs. A file
    that is there already, ours or the original's, is left."""
    path = project.root / CONFIGURATION_FOLDER / IDENTITY_FILE
    if not project.id or path.exists():
        return
    try:
        _create_once(path, render_identity(project.id))
    except OSError as error:
        raise _cannot_write(path, error) from error


def ensure_state_directory(project: Project, home: Path | None = None) -> Path:
    """`.holdfast/` with its `.gitignore`. Refuses `/` and `home`, where `.holdfast` is the machine's own."""
    is_home = home is not None and os.path.realpath(project.root) == os.path.realpath(home)
    if is_home or project.root == project.root.parent:
        raise ProjectError(
            f"`{project.root}` cannot be a project: all that lies below it would belong to it.",
            "Make a folder for the project, move the script there, and run the command in it.",
        )
    directory = project.state_directory
    try:
        directory.mkdir(exist_ok=True)
        _create_once(directory / ".gitignore", "*\n")
    except OSError as error:
        raise _cannot_write(directory, error) from error
    return directory


def run_prefix(name: str) -> str:
    """The part of `name` that a run id may begin with: letters, digits, `_` and `-`, 1 to 40 of them."""
    import unicodedata

    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    legal = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:40].strip("-_")
    return legal or "project"


def new_id() -> str:
    """A random (version 4) UUID as 32 digits; made here because importing `uuid` is slow."""
    number = int.from_bytes(os.urandom(16), "big")
    number = number & ~(0xF << 76) | (4 << 76)
    number = number & ~(0x3 << 62) | (2 << 62)
    return f"{number:032x}"


def render_identity(identity: str, name: str | None = None) -> str:
    """The text of `project.json`."""
    content: dict[str, Any] = {"format": _IDENTITY_FORMAT, "id": identity}
    if name is not None:
        content["name"] = name
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class _Identity:
    id: str = ""
    name: str = ""


def _project(root: Path, is_bare: bool) -> Project:
    shared = _read_identity(root / CONFIGURATION_FOLDER / IDENTITY_FILE)
    own = _Identity() if shared.id else _read_identity(root / _STATE_FOLDER / IDENTITY_FILE)
    name = shared.name or own.name or root.name or "project"
    return Project(root, shared.id or own.id, name, is_bare)


def _read_identity(path: Path) -> _Identity:
    """Empty where there is no file, or one of the original's, which has other keys."""
    give_up = time.monotonic() + _HALF_WRITTEN_SECONDS
    while True:
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return _Identity()
        except OSError as error:
            raise StorageError(f"`{path}` cannot be read: {error.strerror}.", "Check its permissions.") from error
        if content.strip() or time.monotonic() > give_up:
            break
        time.sleep(0.01)  # made without hard links by another process, and not filled yet
    try:
        values = json.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        hint = "Restore it from version control, or delete it: the project then gets a new id."
        raise ProjectError(f"`{path}` is not JSON.", hint) from error
    if not isinstance(values, dict):
        return _Identity()
    name = values.get("name")
    return _Identity(_valid_id(values.get("id")), name if isinstance(name, str) and name.isprintable() else "")


def _valid_id(value: object) -> str:
    """The id becomes a folder's name on hosts: nothing but hexadecimal digits is let through."""
    digits = value.replace("-", "").lower() if isinstance(value, str) else ""
    return digits if re.fullmatch(r"[0-9a-f]{32}", digits, re.ASCII) else ""


def _create_once(path: Path, content: str) -> None:
    """Make the file whole, unless it is there: the second process leaves what the first one wrote."""
    if path.exists():
        return
    beside = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        beside.write_text(content, encoding="utf-8", newline="\n")
        try:
            os.link(beside, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            _create_in_place(path, content)
    finally:
        beside.unlink(missing_ok=True)


def _create_in_place(path: Path, content: str) -> None:
    try:
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        return
    try:
        with file:
            file.write(content)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _cannot_write(path: Path, error: OSError) -> StorageError:
    reason = error.strerror or str(error)
    return StorageError(
        f"`{path}` cannot be written: {reason}.",
        "The project's runs are kept there: make the folder writable, and check that the disk has room.",
    )


def names_with(root: Path, suffix: str) -> list[str]:
    """Every name that has a file with `suffix`, and `local`, sorted."""
    return sorted({BUILTIN, *file_stems(root, suffix)})


def file_stems(root: Path, suffix: str) -> list[str]:
    """Listed, not opened: a name must match its file exactly, also where the file system ignores case."""
    try:
        with os.scandir(root / CONFIGURATION_FOLDER) as found:
            return sorted(
                each.name.removesuffix(suffix) for each in found if each.name.endswith(suffix) and each.is_file()
            )
    except OSError:
        return []


def check_name(kind: str, name: str) -> str:
    """`name` when a new file may have it; UsageError else. `kind` is such as `compute target`."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", name, re.ASCII) or name.endswith("."):
        raise UsageError(
            f"`{name}` cannot be the name of a {kind}.",
            "Use letters, digits, `-`, `_` and `.`; begin with a letter or digit; at most 64 characters.",
        )
    return name


def refuse_paths(kind: str, name: str) -> None:
    if not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise UsageError(f"`{name}` is not the name of a {kind}.", "Give the name alone, without a folder.")
