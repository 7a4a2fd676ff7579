"""The compute target that a command is about: named once, and read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli import terminal
from holdfast.errors import ConfigurationError, UnknownName, UsageError

if TYPE_CHECKING:
    from holdfast.project.compute import ComputeTarget
    from holdfast.project.folder import Project


def one_name(target: str | None, name: str | None) -> str:
    """`NAME` or `-n NAME`."""
    wanted = target or name
    if wanted is None or (target and name and target != name):
        raise UsageError("Say which compute target, once.", "holdfast computetarget list")
    return wanted


def read_target(project: Project, wanted: str) -> ComputeTarget:
    """Its file, with a word about what is wrong with it if that does not keep it from being used."""
    from holdfast.workbench.machines.configuring import list_targets

    listed = {each.name: each for each in list_targets(project)}
    if wanted not in listed:
        raise UnknownName("compute target", wanted, listed)
    found = listed[wanted]
    if found.target is None:
        raise ConfigurationError(found.problems)
    for problem in found.problems:
        terminal.warning(str(problem))
    return found.target
