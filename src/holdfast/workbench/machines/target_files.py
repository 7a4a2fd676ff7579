"""Writing and removing the files in `aml_config/`: compute targets and run configurations."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import ProjectError, StorageError, UnknownName
from holdfast.frozen import dataclass
from holdfast.project import compute, runconfig
from holdfast.project.compute import ComputeTarget, compute_names, read_compute, render_compute
from holdfast.project.folder import BUILTIN, CONFIGURATION_FOLDER, Project, check_name, file_stems
from holdfast.project.problems import Problem
from holdfast.project.runconfig import RunConfiguration, read_runconfig, render_runconfig, runconfig_names
from holdfast.shown_text import pasted
from holdfast.whole_files import create_new
from holdfast.workbench.reach.targets import PLANNED, not_available


@dataclass(frozen=True)
class ListedFile:
    """One file of `aml_config/`, readable or not."""

    name: str
    file: str | None
    problems: tuple[Problem, ...]
    target: ComputeTarget | None = None
    run: RunConfiguration | None = None


def target_type(written: str) -> str:
    """The type that `attach` was given, in its usual spelling. Raises NotAvailable for one that does not work yet."""
    kind = "docker" if written == "localdocker" else written
    if kind not in compute.TYPES:
        raise UnknownName("type of compute target", written, compute.SPELLINGS)
    if kind in PLANNED:
        raise not_available(kind)
    return kind


def attach_local(project: Project, name: str) -> list[str]:
    """Write the files of a target on this machine. Returns them; writes none if it cannot."""
    refuse_existing(project, name)
    return write_target(project, ComputeTarget(name, "local", user_managed_environment=True))


def refuse_existing(project: Project, name: str) -> None:
    """A name that cannot be a target's, or is one's already."""
    check_name("compute target", name)
    _refuse_existing(project, [f"{name}{compute.SUFFIX}", f"{name}{runconfig.SUFFIX}"], _detaching(name))


def write_target(project: Project, target: ComputeTarget) -> list[str]:
    """Write `<name>.compute` and `<name>.runconfig`, both or none. Returns the files."""
    texts = {
        f"{target.name}{compute.SUFFIX}": render_compute(target),
        f"{target.name}{runconfig.SUFFIX}": render_runconfig(RunConfiguration(target.name, target.name)),
    }
    return _write_new(project, texts, _detaching(target.name))


def create_runconfig(project: Project, name: str, target: str) -> list[str]:
    check_name("run configuration", name)
    if target not in compute_names(project.root):
        attach = f"holdfast computetarget attach remote -n {pasted(target)} -a HOST"
        hint = f"If it is a machine that is not attached yet: {attach}"
        raise UnknownName("compute target", target, compute_names(project.root), hint)
    text = render_runconfig(RunConfiguration(name, target))
    return _write_new(
        project, {f"{name}{runconfig.SUFFIX}": text}, f"holdfast runconfiguration delete -n {pasted(name)}"
    )


def list_targets(project: Project) -> list[ListedFile]:
    found = []
    for name in compute_names(project.root):
        target, problems = read_compute(project.root, name)
        found.append(ListedFile(name, _file(project, name, compute.SUFFIX), tuple(problems), target=target))
    return found


def list_runconfigs(project: Project) -> list[ListedFile]:
    found = []
    for name in runconfig_names(project.root):
        run, problems = read_runconfig(project.root, name)
        found.append(ListedFile(name, _file(project, name, runconfig.SUFFIX), tuple(problems), run=run))
    return found


def require_target(project: Project, name: str) -> None:
    """A target that has a file."""
    _require_file(project, "compute target", name, compute.SUFFIX)


def detach(project: Project, name: str) -> tuple[list[str], list[str]]:
    """Remove the target's file and the run configuration of the same name, if that is where it points.

    Returns what was removed, and other run configurations that still name the target."""
    require_target(project, name)
    users = [each.name for each in list_runconfigs(project) if each.run and each.run.target == name and each.file]
    removed = [f"{name}{compute.SUFFIX}"] + ([f"{name}{runconfig.SUFFIX}"] if name in users else [])
    _remove(project, removed)
    return removed, [user for user in users if user != name]


def delete_runconfig(project: Project, name: str) -> list[str]:
    _require_file(project, "run configuration", name, runconfig.SUFFIX)
    removed = [f"{name}{runconfig.SUFFIX}"]
    _remove(project, removed)
    return removed


def _file(project: Project, name: str, suffix: str) -> str | None:
    return f"{CONFIGURATION_FOLDER}/{name}{suffix}" if name in file_stems(project.root, suffix) else None


def _require_file(project: Project, kind: str, name: str, suffix: str) -> None:
    names = file_stems(project.root, suffix)
    if name in names:
        return
    if name == BUILTIN:
        raise ProjectError(f"The {kind} `local` is built in and has no file here.", "There is nothing to remove.")
    raise UnknownName(kind, name, names)


def _detaching(name: str) -> str:
    return f"holdfast computetarget detach -n {pasted(name)}"


def _refuse_existing(project: Project, names: list[str], removal: str) -> None:
    for name in names:
        if (project.root / CONFIGURATION_FOLDER / name).exists():
            raise ProjectError(f"`{CONFIGURATION_FOLDER}/{name}` is there already.", f"Remove it first: {removal}")


def _write_new(project: Project, texts: dict[str, str], removal: str) -> list[str]:
    """All files or none; an existing one is never overwritten."""
    _refuse_existing(project, list(texts), removal)
    folder = project.root / CONFIGURATION_FOLDER
    written: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
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
    return [f"{CONFIGURATION_FOLDER}/{name}" for name in texts]


def _remove(project: Project, names: list[str]) -> None:
    for name in names:
        try:
            (project.root / CONFIGURATION_FOLDER / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"`{name}` cannot be removed: {error.strerror}.", "Check its permissions.") from error
