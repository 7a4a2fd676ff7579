"""The context of a command: the one place where the environment, the home folder and the clock are read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import ProjectError, UsageError
from holdfast.frozen import dataclass
from holdfast.project.account_folder import account_folder
from holdfast.project.folder import Project, find_project, named_project
from holdfast.workbench.reach.boot_clock import SinceBoot, read_boot_clock

if TYPE_CHECKING:
    from holdfast.hosts.ssh_questions import Ask

PASSWORD_VARIABLE = "HOLDFAST_PASSWORD"  # noqa: S105 - the name of a variable, no secret

Choose = Callable[[str, Sequence[str]], "str | None"]
"""Gets a question and the answers that it may have, the usual one first; None: none was given."""


@dataclass(frozen=True)
class Context:
    """`home` is Holdfast's folder on this machine, `environment` the variables, `directory` where the command was
    typed. `ask` answers questions of ssh, and `choose` those of Holdfast (None: the user cannot be asked).
    `only_looks`: the command starts no program that a project names, or that chooses by the project's files. `account`
    has the compute targets of the account; `named_project` is the folder that the user named as the project."""

    home: Path
    environment: Mapping[str, str]
    directory: Path
    user_home: Path
    now: Callable[[], float] = time.time
    boot_clock: Callable[[], SinceBoot | None] = read_boot_clock
    ask: Ask | None = None
    only_looks: bool = False
    choose: Choose | None = None
    account: Path | None = None
    named_project: Path | None = None

    def for_children(self) -> dict[str, str]:
        """The variables without what no child may see."""
        return {name: value for name, value in self.environment.items() if name != PASSWORD_VARIABLE}


def read_context() -> Context:
    environment = dict(os.environ)
    user_home = _user_home(environment)
    named = environment.get("HOLDFAST_HOME")
    home = Path(named).expanduser() if named else user_home / ".holdfast"
    if not home.is_absolute():
        raise UsageError(
            f"HOLDFAST_HOME is `{named}`, which means another folder in every folder.", "Give it an absolute path."
        )
    try:
        directory = Path.cwd()
    except FileNotFoundError:
        raise ProjectError("The current folder does not exist any more.", "Change to a folder that does.") from None
    return Context(home, environment, directory, user_home, account=account_folder(environment, user_home))


def project_of(context: Context) -> Project:
    """The project that the command is about. Raises ProjectError for a folder that can be none."""
    if context.named_project is not None:
        return named_project(context.directory / context.named_project.expanduser(), context.home, context.account)
    return find_project(context.directory, context.home, context.user_home, context.account)


def _user_home(environment: Mapping[str, str]) -> Path:
    """HOME if it is an absolute path, else the account's own. On Windows ssh and all else use USERPROFILE."""
    named = Path(environment.get("USERPROFILE" if sys.platform == "win32" else "HOME") or "")
    if named.is_absolute():
        return named
    if sys.platform == "win32":
        raise UsageError("USERPROFILE names no folder.", "Set it to your own, such as C:\\Users\\me.")
    import pwd  # only where HOME is missing or strange

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise UsageError("This account has no home folder.", "Set HOLDFAST_HOME to a folder of yours.") from None
