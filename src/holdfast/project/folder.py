"""The project as a folder: finding it, its id and name, its `.holdfast/`, and the names that stand for files in
`aml_config/`."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, ProjectError, StorageError, UsageError
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass, replace
from holdfast.project import provenance
from holdfast.project.configuration_folders import BUILTIN as BUILTIN
from holdfast.project.configuration_folders import CONFIGURATION_FOLDER as CONFIGURATION_FOLDER
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.folders_above import counts_above
from holdfast.project.provenance import STATE_FOLDER
from holdfast.regular_files import read_regular
from holdfast.shown_text import pasted
from holdfast.whole_files import write_once

IDENTITY_FILE = "project.json"
_GIT = ".git"
_IDENTITY_FORMAT = 1

_LARGEST_IDENTITY = 1 << 20
_HALF_WRITTEN_SECONDS = 2.0
"""How long another process may take between making the identity's file and filling it."""


@dataclass(frozen=True)
class Project:
    """`id` is 32 hexadecimal digits, empty before `ensure_identity`. `is_bare`: without `aml_config/`. `home` is
    Holdfast's folder on this machine; `account` has the account's own compute targets."""

    root: Path
    id: str
    name: str
    is_bare: bool
    home: Path
    account: Path | None = None

    @property
    def configuration_folders(self) -> ConfigurationFolders:
        return ConfigurationFolders(self.root, self.account)

    @property
    def state_directory(self) -> Path:
        """`.holdfast/`, which need not be there: the one way to it. Raises ProjectError where this account did not make
        it, before anything in it is opened. Looked at once for a command, and again while it is made."""
        return self._state.path

    @cached_property
    def _state(self) -> _State:
        return _State(self.root / STATE_FOLDER, self.home)

    def with_identity(self, identity: str, name: str) -> Project:
        """The same project; what was found of its folder stays known."""
        found = replace(self, id=identity, name=name)
        vars(found)["_state"] = self._state
        return found


class _State:
    """The project's `.holdfast/`, as it was found."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path, self.is_made = path, provenance.is_made(path, home)


def find_project(start: Path, home: Path, user_home: Path | None = None, account: Path | None = None) -> Project:
    """The nearest folder at or above `start` with `aml_config/`, else the top of the git repository around it, whatever
    ran there before. Without a repository: the nearest with an identity, else `start`, bare.

    `~/.holdfast` is this machine's own and has no identity. `home` is Holdfast's folder on this machine, `account` the
    account's own of compute targets. `user_home` is the user's home directory: a repository of dot files there is no
    project.
    """
    here = Path(os.path.abspath(start))
    _require_folder(here)
    return _project(_root_above(here, user_home), home, account)


def named_project(folder: Path, home: Path, account: Path | None = None) -> Project:
    """The project that is exactly this folder, whatever lies around it."""
    _require_folder(folder)
    return _project(Path(real_path(folder)), home, account)


def _require_folder(folder: Path) -> None:
    if not os.path.isdir(folder):
        raise ProjectError(f"`{folder}` is not a folder.", "Change to the project's folder, or make it.")


def _root_above(here: Path, user_home: Path | None) -> Path:
    candidates = (here, *here.parents)
    for folder in candidates:
        if os.path.isdir(folder / CONFIGURATION_FOLDER):
            _refuse_project_above(folder / CONFIGURATION_FOLDER, here)
            return folder
    top = _repository_top(candidates, user_home)
    if top is not None:
        return top
    for folder in candidates:
        if os.path.isfile(folder / STATE_FOLDER / IDENTITY_FILE):
            _refuse_project_above(folder / STATE_FOLDER, here)
            return folder
    return here


def _repository_top(candidates: tuple[Path, ...], user_home: Path | None) -> Path | None:
    """None also for one that could be no project."""
    for folder in candidates:
        if os.path.lexists(folder / _GIT):
            try:
                counts = folder == candidates[0] or counts_above(folder / _GIT)
            except OSError:
                continue
            if counts:
                return None if _holds_all(folder, user_home) else folder
    return None


def ensure_identity(project: Project, user_home: Path | None = None) -> Project:
    """The project with its id, made on first use. Two processes at once end with the same one.

    `user_home` is the user's home directory, where given: see `ensure_state_directory`.
    """
    if project.id:
        return project
    ensure_state_directory(project, user_home)
    path = project.state_directory / IDENTITY_FILE
    try:
        write_once(path, render_identity(new_id()).encode())
    except OSError as error:
        raise _cannot_write(path, error) from error
    found = _read_identity(path, follows_link=False)
    if not found.id:
        raise ProjectError(f"`{path}` has no id.", "Delete the file; the next command makes a new one.")
    return project.with_identity(found.id, project.name)


def share_identity(project: Project) -> None:
    """Let `aml_config/` carry the project's id, so that a copy of the project elsewhere finds the same runs. A file
    that is there already, ours or the original's, is left."""
    path = project.root / CONFIGURATION_FOLDER / IDENTITY_FILE
    if not project.id or os.path.exists(path):
        return
    try:
        write_once(path, render_identity(project.id).encode())
    except OSError as error:
        raise _cannot_write(path, error) from error


def ensure_state_directory(project: Project, user_home: Path | None = None) -> Path:
    """`.holdfast/` with its `.gitignore`. Raises ProjectError where the folder cannot be a project's."""
    _refuse_as_project(project, user_home)
    state = project._state
    try:
        if state.is_made:
            provenance.hide_from_git(state.path)
        else:
            provenance.make(state.path, project.home)
            state.is_made = True
    except OSError as error:
        raise _cannot_write(Path(os.fsdecode(error.filename or state.path)), error) from error
    return state.path


def require_state_directory(project: Project, user_home: Path | None = None) -> None:
    """Raises what `ensure_state_directory` raises of a folder that cannot be used. Makes nothing."""
    _refuse_as_project(project, user_home)
    if not project._state.is_made:
        provenance.refuse_tracked(project.state_directory)


def _refuse_as_project(project: Project, user_home: Path | None) -> None:
    """Raises ProjectError for `/` and for a folder that is shared as /tmp is, to which strangers' files belong, and for
    `user_home`, where `.holdfast` is the machine's own."""
    if _holds_all(project.root, user_home):
        raise ProjectError(
            f"`{project.root}` cannot be a project: all that lies below it would belong to it.",
            "Make a folder for the project, move the script there, and run the command in it.",
        )


def _holds_all(root: Path, user_home: Path | None) -> bool:
    is_home = user_home is not None and real_path(root) == real_path(user_home)
    return is_home or root == root.parent or _is_shared(root)


def _is_shared(folder: Path) -> bool:
    """Whether everybody may make files there that only they can remove."""
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


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


def _refuse_project_above(found: Path, here: Path) -> None:
    if found.parent == here or counts_above(found):
        return
    raise ProjectError(
        f"`{found}` belongs to another account, so the folders below it are not taken for that project.",
        f"If it is the project you mean: cd {pasted(str(found.parent))}\n"
        f"If not, make this folder a project of its own: mkdir {CONFIGURATION_FOLDER}",
    )


def _project(root: Path, home: Path, account: Path | None) -> Project:
    is_bare = not os.path.isdir(root / CONFIGURATION_FOLDER)
    shared = _Identity() if is_bare else _read_identity(root / CONFIGURATION_FOLDER / IDENTITY_FILE)
    project = Project(root, shared.id, shared.name or root.name or "project", is_bare, home, account)
    if shared.id:
        return project
    try:
        state = project.state_directory
    except HoldfastError:  # a command that needs the folder says so
        return project
    own = _read_identity(state / IDENTITY_FILE, follows_link=False)
    return project.with_identity(own.id, shared.name or own.name or project.name)


def _read_identity(path: Path, follows_link: bool = True) -> _Identity:
    """Empty where there is no file, or one of the original's, which has other keys."""
    give_up = time.monotonic() + _HALF_WRITTEN_SECONDS
    while True:
        try:
            content = read_regular(path, _LARGEST_IDENTITY, follows_link)
        except (FileNotFoundError, NotADirectoryError):
            return _Identity()
        except OSError as error:
            raise StorageError(f"`{path}` cannot be read: {error.strerror}.", "Check its permissions.") from error
        if content.strip() or time.monotonic() > give_up:
            break
        time.sleep(0.01)  # made without hard links by another process, and not filled yet
    try:
        values = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
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


def _cannot_write(path: Path, error: OSError) -> StorageError:
    reason = error.strerror or str(error)
    return StorageError(
        f"`{path}` cannot be written: {reason}.",
        "The project's runs are kept there: make the folder writable, and check that the disk has room.",
    )


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
