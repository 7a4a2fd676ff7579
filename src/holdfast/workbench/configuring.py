"""Writing and removing the files in `aml_config/`: compute targets and run configurations."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import ProjectError, StorageError, UnknownName, UsageError
from holdfast.project import compute, runconfig
from holdfast.project.compute import ComputeTarget, compute_names, read_compute, render_compute
from holdfast.project.folder import Project
from holdfast.project.names import BUILTIN, CONFIGURATION_FOLDER, check_name, file_stems
from holdfast.project.problems import Problem
from holdfast.project.runconfig import RunConfiguration, read_runconfig, render_runconfig, runconfig_names
from holdfast.workbench.targets import PLANNED, not_available


@dataclass(frozen=True)
class Attachment:
    """What `attach` was given."""

    name: str
    type: str
    address: str | None = None
    username: str | None = None


@dataclass(frozen=True)
class Listed:
    """One file of `aml_config/`, readable or not."""

    name: str
    file: str | None
    problems: tuple[Problem, ...]
    target: ComputeTarget | None = None
    run: RunConfiguration | None = None


def attach(project: Project, wanted: Attachment) -> list[str]:
    """Check the target, then write `<name>.compute` and `<name>.runconfig`. Returns the files; writes none if it
    cannot."""
    check_name("compute target", wanted.name)
    kind = "docker" if wanted.type == "localdocker" else wanted.type
    if kind not in compute.TYPES:
        raise UnknownName("type of compute target", wanted.type, compute.SPELLINGS)
    if kind in PLANNED:
        raise not_available(kind)
    if wanted.address or wanted.username:
        raise UsageError("A `local` target has no address and no user.", "Leave out --address and --username.")
    target = ComputeTarget(wanted.name, kind, user_managed_environment=True)
    run = RunConfiguration(wanted.name, wanted.name)
    texts = {
        f"{wanted.name}{compute.SUFFIX}": render_compute(target),
        f"{wanted.name}{runconfig.SUFFIX}": render_runconfig(run),
    }
    return _write_new(project, texts, f"holdfast computetarget detach -n {wanted.name}")


def create_runconfig(project: Project, name: str, target: str) -> list[str]:
    check_name("run configuration", name)
    if target not in compute_names(project.root):
        hint = f"To add it: holdfast computetarget attach local -n {target}"
        raise UnknownName("compute target", target, compute_names(project.root), hint)
    text = render_runconfig(RunConfiguration(name, target))
    return _write_new(project, {f"{name}{runconfig.SUFFIX}": text}, f"holdfast runconfiguration delete -n {name}")


def list_targets(project: Project) -> list[Listed]:
    found = []
    for name in compute_names(project.root):
        target, problems = read_compute(project.root, name)
        found.append(Listed(name, _file(project, name, compute.SUFFIX), tuple(problems), target=target))
    return found


def list_runconfigs(project: Project) -> list[Listed]:
    found = []
    for name in runconfig_names(project.root):
        run, problems = read_runconfig(project.root, name)
        found.append(Listed(name, _file(project, name, runconfig.SUFFIX), tuple(problems), run=run))
    return found


def detach(project: Project, name: str) -> tuple[list[str], list[str]]:
    """Remove the target's file and the run configuration of the same name, if that is where it points.

    Returns what was removed, and other run configurations that still name the target."""
    _require_file(project, "compute target", name, compute.SUFFIX)
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


def _write_new(project: Project, texts: dict[str, str], removal: str) -> list[str]:
    """All files or none; an existing one is never overwritten."""
    folder = project.root / CONFIGURATION_FOLDER
    existing = [name for name in texts if (folder / name).exists()]
    if existing:
        raise ProjectError(f"`{CONFIGURATION_FOLDER}/{existing[0]}` is there already.", f"Remove it first: {removal}")
    written: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            new = folder / f".{name}.new-{os.getpid()}"
            written.append(new)
            new.write_text(text, encoding="utf-8", newline="\n")
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
