"""Whose a compute target is: a project's, whose `aml_config/` has its files, or the account's own, for all projects."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Protocol

from holdfast.errors import ConfigurationError, UsageError
from holdfast.frozen import replace
from holdfast.project import compute
from holdfast.project.account_folder import distrust
from holdfast.project.configuration_folders import BUILTIN, CONFIGURATION_FOLDER, ConfigurationFolders
from holdfast.project.folder import IDENTITY_FILE, Project, ensure_identity, share_identity
from holdfast.project.own_home import make_own
from holdfast.project.provenance import ORIGIN, forget
from holdfast.workbench.reach.context import Context, project_of

ACCOUNT = "account"
"""In the place of a project's id."""


class TargetOwner(Protocol):
    """`folders` has only the owner's own files. They lie in `path`, and are shown as `shown` with their names."""

    folders: ConfigurationFolders
    path: Path
    shown: str
    is_account: bool

    def make(self) -> None:
        """The folder. Raises OSError; and ConfigurationError where what is in it is not to be believed."""

    def begin(self, needs_key: bool) -> str:
        """What tells a key of ours from those of other owners. Called before anything is done."""

    def finish(self) -> None:
        """The files are written."""

    def undo(self) -> None:
        """Nothing was written after all."""


class OfProject:
    is_account = False

    def __init__(self, project: Project, context: Context) -> None:
        self._project, self._context = project, context
        self._is_new = False
        self.folders = replace(project.configuration_folders, account=None)
        self.path, self.shown = project.root / CONFIGURATION_FOLDER, f"{CONFIGURATION_FOLDER}/"

    def make(self) -> None:
        self.path.mkdir(exist_ok=True)

    def begin(self, needs_key: bool) -> str:
        self._is_new = not self._project.state_directory.exists()
        if needs_key:
            self._project = ensure_identity(self._project, self._context.user_home)
        return self._project.id

    def finish(self) -> None:
        share_identity(self._project)

    def undo(self) -> None:
        """Takes away what `ensure_identity` has made, unless something was put beside it."""
        if not self._is_new:
            return
        folder, ours = self._project.state_directory, (IDENTITY_FILE, ".gitignore")
        with contextlib.suppress(OSError):
            if all(each.name in (*ours, ORIGIN) for each in folder.iterdir()):
                forget(folder, self._project.home)
                for name in ours:
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()


class OfAccount:
    is_account = True

    def __init__(self, folder: Path) -> None:
        self.folders = ConfigurationFolders(folder, folder, is_only_account=True)
        self.path, self.shown = folder, f"{folder}{os.sep}"

    def make(self) -> None:
        make_own(self.path)
        self._require_own()

    def begin(self, needs_key: bool) -> str:
        if os.path.lexists(self.path):
            self._require_own()
        return ACCOUNT

    def finish(self) -> None:
        pass

    def undo(self) -> None:
        pass

    def _require_own(self) -> None:
        problem = distrust(self.path / f"new{compute.SUFFIX}")
        if problem is not None:
            raise ConfigurationError([problem])


def owner_of_new(name: str, of_account: bool, context: Context) -> TargetOwner:
    """Whose a new target of that name is to be."""
    if not of_account:
        return OfProject(project_of(context), context)
    if name == BUILTIN:
        raise UsageError(
            "`local` is built in, and only a project can change it.", "Leave out --user, or choose a name."
        )
    return OfAccount(account_of(context))


def account_of(context: Context) -> Path:
    """Raises UsageError for a context that has none."""
    if context.account is None:
        raise UsageError("This account has no settings folder.", "Set HOME.")
    return context.account
