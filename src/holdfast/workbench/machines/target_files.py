"""Writing, listing and removing the files of compute targets and run configurations."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import ProjectError, StorageError, UnknownName
from holdfast.frozen import dataclass
from holdfast.project import compute, runconfig
from holdfast.project.compute import ComputeTarget, compute_names, has_compute, read_compute, render_compute
from holdfast.project.configuration_folders import BUILTIN, ConfigurationFolders
from holdfast.project.folder import Project, check_name
from holdfast.project.problems import Problem
from holdfast.project.runconfig import RunConfiguration, read_runconfig, render_runconfig, runconfig_names
from holdfast.shown_text import pasted
from holdfast.whole_files import create_new
from holdfast.workbench.machines.target_owners import OfAccount, OfProject, TargetOwner, account_of
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import PLANNED, not_available


@dataclass(frozen=True)
class ListedFile:
    """A compute target or run configuration, readable or not. `hides`: the account's own file whose place it takes."""

    name: str
    file: str | None
    problems: tuple[Problem, ...]
    target: ComputeTarget | None = None
    run: RunConfiguration | None = None
    hides: str | None = None


def target_type(written: str) -> str:
    """The type that `attach` was given, in its usual spelling. Raises NotAvailable for one that does not work yet."""
    kind = "docker" if written == "localdocker" else written
    if kind not in compute.TYPES:
        raise UnknownName("type of compute target", written, compute.SPELLINGS)
    if kind in PLANNED:
        raise not_available(kind)
    return kind


def attach_local(owner: TargetOwner, name: str, python: str | None = None) -> list[str]:
    """Write the files of a target on this machine. Returns them; writes none if it cannot."""
    refuse_existing(owner, name)
    return write_target(owner, ComputeTarget(name, "local", user_managed_environment=True, python_location=python))


def refuse_existing(owner: TargetOwner, name: str) -> None:
    """A name that cannot be a target's, or is one's already."""
    check_name("compute target", name)
    _refuse_existing(owner, [f"{name}{compute.SUFFIX}", f"{name}{runconfig.SUFFIX}"], _detaching(owner, name))


def write_target(owner: TargetOwner, target: ComputeTarget) -> list[str]:
    """Write `<name>.compute` and `<name>.runconfig`, both or none. Returns the files."""
    texts = {
        f"{target.name}{compute.SUFFIX}": render_compute(target),
        f"{target.name}{runconfig.SUFFIX}": render_runconfig(RunConfiguration(target.name, target.name)),
    }
    return _write_new(owner, texts, _detaching(owner, target.name))


def create_runconfig(owner: TargetOwner, folders: ConfigurationFolders, name: str, target: str) -> list[str]:
    """`folders`: those in which the target is looked for."""
    check_name("run configuration", name)
    if not has_compute(folders, target):
        attach = f"holdfast computetarget attach remote -n {pasted(target)} -a HOST"
        hint = f"If it is a machine that is not attached yet: {attach}"
        raise UnknownName("compute target", target, compute_names(folders), hint)
    text = render_runconfig(RunConfiguration(name, target))
    return _write_new(owner, {f"{name}{runconfig.SUFFIX}": text}, f"holdfast runconfiguration delete -n {pasted(name)}")


def list_targets(project: Project) -> list[ListedFile]:
    found, folders = [], project.configuration_folders
    for name in compute_names(folders):
        target, problems = read_compute(folders, name)
        found.append(_listed(folders, name, compute.SUFFIX, tuple(problems), target=target))
    return found


def list_runconfigs(project: Project) -> list[ListedFile]:
    found, folders = [], project.configuration_folders
    for name in runconfig_names(folders):
        run, problems = read_runconfig(folders, name)
        found.append(_listed(folders, name, runconfig.SUFFIX, tuple(problems), run=run))
    return found


def unused_in(account: Path | None) -> list[str]:
    """Files of the account's folder that no project sees: only a project can change `local`."""
    names = [f"{BUILTIN}{suffix}" for suffix in (compute.SUFFIX, runconfig.SUFFIX)]
    return [os.fspath(account / name) for name in names if os.path.lexists(account / name)] if account else []


def owner_of(project: Project, name: str, of_account: bool, context: Context) -> TargetOwner:
    """Who has the file of the target: the project if both do, unless the account's is meant. Raises UnknownName."""
    return _owner("compute target", project, name, compute.SUFFIX, of_account, context)


def detach(owner: TargetOwner, project: Project, name: str) -> tuple[list[str], list[str]]:
    """Remove the target's file and the run configuration of the same name, if that is where it points.

    Returns what was removed, and other run configurations that still name the target."""
    file = owner.folders.file(name, runconfig.SUFFIX)
    run = read_runconfig(owner.folders, name, None)[0] if file else None
    names = [f"{name}{compute.SUFFIX}"] + ([f"{name}{runconfig.SUFFIX}"] if run and run.target == name else [])
    users = [each.name for each in list_runconfigs(project) if each.run and each.run.target == name and each.file]
    removed = _remove(owner, names)
    is_gone = not has_compute(project.configuration_folders, name)
    return removed, [user for user in users if is_gone and (user != name or len(names) == 1)]


def delete_runconfig(project: Project, name: str, context: Context) -> list[str]:
    owner = _owner("run configuration", project, name, runconfig.SUFFIX, False, context)
    return _remove(owner, [f"{name}{runconfig.SUFFIX}"])


def _listed(
    folders: ConfigurationFolders,
    name: str,
    suffix: str,
    problems: tuple[Problem, ...],
    target: ComputeTarget | None = None,
    run: RunConfiguration | None = None,
) -> ListedFile:
    return ListedFile(name, folders.file(name, suffix), problems, target, run, folders.hidden(name, suffix))


def _owner(kind: str, project: Project, name: str, suffix: str, of_account: bool, context: Context) -> TargetOwner:
    folders = project.configuration_folders
    if not of_account and name in folders.of_project(suffix):
        return OfProject(project, context)
    if name in folders.of_account(suffix):
        return OfAccount(account_of(context))
    if name == BUILTIN:
        raise ProjectError(f"The {kind} `local` is built in and has no file here.", "There is nothing to remove.")
    raise UnknownName(kind, name, [*([] if of_account else folders.of_project(suffix)), *folders.of_account(suffix)])


def _detaching(owner: TargetOwner, name: str) -> str:
    if owner.is_account:
        return f"holdfast computetarget detach --user {pasted(name)}"
    return f"holdfast computetarget detach -n {pasted(name)}"


def _refuse_existing(owner: TargetOwner, names: list[str], removal: str) -> None:
    for name in names:
        if (owner.path / name).exists():
            raise ProjectError(f"`{owner.shown}{name}` is there already.", f"Remove it first: {removal}")


def _write_new(owner: TargetOwner, texts: dict[str, str], removal: str) -> list[str]:
    """All files or none; an existing one is never overwritten."""
    _refuse_existing(owner, list(texts), removal)
    folder = owner.path
    written: list[Path] = []
    try:
        owner.make()
        for name, text in texts.items():
            new = folder / f".{name}.new-{os.urandom(8).hex()}"
            written.append(new)
            with create_new(new) as file:
                file.write(text.encode())
        for name, new in zip(texts, tuple(written), strict=True):
            os.link(new, folder / name)
            written.append(folder / name)
    except OSError as error:
        for path in written[len(texts) :]:
            path.unlink(missing_ok=True)
        raise StorageError(f"`{folder}` cannot be written: {error.strerror}.", "Check its permissions.") from error
    finally:
        for path in written[: len(texts)]:
            path.unlink(missing_ok=True)
    return [f"{owner.shown}{name}" for name in texts]


def _remove(owner: TargetOwner, names: list[str]) -> list[str]:
    for name in names:
        try:
            (owner.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"`{owner.shown}{name}` cannot be removed: {error.strerror}.", "Check its permissions."
            ) from error
    return [f"{owner.shown}{name}" for name in names]
