"""The two places of compute targets and run configurations: the project's `aml_config/`, then the account's own
folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.frozen import dataclass
from holdfast.project.problems import Problem

if TYPE_CHECKING:  # reading YAML is loaded when there is a file to read: a bare folder has none
    from holdfast.project.documents import Document

CONFIGURATION_FOLDER = "aml_config"
BUILTIN = "local"
"""Always there: a folder without any file still runs on this machine."""


@dataclass(frozen=True)
class ConfigurationFolders:
    """`root` is the project; `account` the folder whose files every project sees, None for no such folder.

    A project's own file comes before one of the account. What `local` means, only a project can change. Names of other
    files in a file, such as those of packages, are meant from the project in both."""

    root: Path
    account: Path | None = None
    is_only_account: bool = False
    """Whether the project's are left out."""

    def names(self, suffix: str) -> list[str]:
        """Every name that has a file with `suffix`, and `local`, sorted."""
        return sorted({BUILTIN, *self.of_project(suffix), *self.of_account(suffix)})

    def of_project(self, suffix: str) -> list[str]:
        return [] if self.is_only_account else _stems(self.root / CONFIGURATION_FOLDER, suffix)

    def of_account(self, suffix: str) -> list[str]:
        """Also those that a file of the project hides."""
        found = [] if self.account is None else _stems(self.account, suffix)
        return [name for name in found if name != BUILTIN]

    def has(self, name: str, suffix: str) -> bool:
        return name == BUILTIN or self.file(name, suffix) is not None

    def file(self, name: str, suffix: str) -> str | None:
        """The file of that name: relative to the project with `/`, or the whole path of one of the account."""
        if name in self.of_project(suffix):
            return f"{CONFIGURATION_FOLDER}/{name}{suffix}"
        return self.account_file(name, suffix)

    def account_file(self, name: str, suffix: str) -> str | None:
        """The account's own file of that name, whether the project hides it or not."""
        if self.account is None or name not in self.of_account(suffix):
            return None
        return os.fspath(self.account / f"{name}{suffix}")

    def hidden(self, name: str, suffix: str) -> str | None:
        """The account's own file, if one of the project takes its place."""
        found = self.account_file(name, suffix)
        return found if found is not None and name in self.of_project(suffix) else None

    def read(self, name: str, suffix: str, missing: str) -> tuple[Document | None, list[Problem]]:
        """The mapping in the file, and every problem of its form. `missing` is the remedy for a missing file."""
        from holdfast.project.documents import read_document

        file = self.file(name, suffix) or f"{CONFIGURATION_FOLDER}/{name}{suffix}"
        if os.path.isabs(file):
            from holdfast.project.account_folder import distrust

            problem = distrust(Path(file))
            if problem is not None:
                return None, [problem]
        return read_document(self.root, file, missing)


def _stems(folder: Path, suffix: str) -> list[str]:
    """Listed, not opened: a name must match its file exactly, also where the file system ignores case."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                each.name.removesuffix(suffix) for each in found if each.name.endswith(suffix) and os.path.isfile(each)
            )
    except OSError:
        return []
