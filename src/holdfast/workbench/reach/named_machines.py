"""Machines as users name them: by a compute target, or by the address alone."""

from __future__ import annotations

from holdfast.errors import ConfigurationError, UnknownName, UsageError
from holdfast.hosts.host import Host
from holdfast.project.compute import (
    BUILTIN_LOCAL,
    ComputeTarget,
    compute_names,
    has_compute,
    parse_address,
    read_compute,
    user_mistake,
)
from holdfast.project.folder import Project
from holdfast.project.problems import Mistake
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of


def host_of_target(project: Project, target: str | None, context: Context, address: str | None = None) -> Host:
    """None: this machine, or the one at `address`. Raises UnknownName, UsageError, and ConfigurationError for a file
    with problems."""
    if address is not None:
        if target is not None:
            raise UsageError("A machine is named twice.", "Leave out --target or --address.")
        return host_of(target_at(address), context)
    if target is None:
        return host_of(BUILTIN_LOCAL, context)
    folders = project.configuration_folders
    if not has_compute(folders, target):
        raise UnknownName("compute target", target, compute_names(folders))
    found, problems = read_compute(folders, target)
    if found is None:
        raise ConfigurationError(problems)
    return host_of(found, context)


def target_at(written: str) -> ComputeTarget:
    """What `[USER@]HOST[:PORT]` means; Holdfast's folder there is the usual one. Raises UsageError."""
    user, at, place = written.rpartition("@")
    found = parse_address(place)
    if isinstance(found, Mistake):
        raise UsageError(f"--address: {found.message}.", "Write it as [USER@]HOST[:PORT], such as me@gpu1:2222.")
    mistake = user_mistake(user) if at else None
    if mistake is not None:
        raise UsageError(f"--address: {mistake.message}.", mistake.remedy)
    return ComputeTarget(written, "remote", found[0], found[1], user or None, user_managed_environment=True)
