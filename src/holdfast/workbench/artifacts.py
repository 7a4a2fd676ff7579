"""A run's files: which there are at home, and copies of them for people."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import StorageError, UnknownName, UsageError
from holdfast.history.folder import RunFolders
from holdfast.history.records import read_run
from holdfast.history.storage import storage_error
from holdfast.project.folder import Project
from holdfast.snapshots.store import CHUNK, copy_stream, digest_of_stream
from holdfast.workbench.surroundings import Surroundings

FOLDERS = ("outputs", "uploads")
LOGS = ("driver_log", "control_log")


@dataclass(frozen=True)
class Artifact:
    """`path` is relative to the run (`outputs/model.pkl`); `file` is where its content lies."""

    path: str
    file: Path
    size: int


@dataclass(frozen=True)
class Copied:
    """One file of a download is done."""

    path: str
    destination: Path
    size: int
    done: int
    total: int


@dataclass(frozen=True)
class LinkLeftOut:
    """A symbolic link that leads out of the run's folder, or nowhere, is not copied."""

    path: str


def artifacts(project: Project, run_id: str) -> tuple[Artifact, ...]:
    """What the run wrote to `outputs/` and gave to `holdfast.upload()`, as far as it is at home."""
    folder = RunFolders(project.state_directory).path(run_id)
    return tuple(each for each in _walk(folder) if isinstance(each, Artifact))


def find_artifact(project: Project, run_id: str, path: str) -> Artifact:
    """The artifact that a person means: `outputs/model.pkl`, `model.pkl`, `driver_log`."""
    found = {each.path: each for each in (*artifacts(project, run_id), *_logs(project, run_id))}
    wanted = path.replace(os.sep, "/").removeprefix("./")
    for name in (wanted, *(f"{folder}/{wanted}" for folder in FOLDERS)):
        if name in found:
            return found[name]
    raise UnknownName(f"artifact of run `{run_id}`", path, found, f"All of them: holdfast history info -r {run_id}")


@dataclass(frozen=True)
class Download:
    """What to bring where. `artifact` None: everything; it keeps its path below `destination`."""

    run_id: str
    destination: Path
    artifact: str | None = None
    overwrite: bool = False


def download(project: Project, wanted: Download, around: Surroundings) -> Iterator[Copied | LinkLeftOut]:
    """Copy artifacts of a run. A file in the way, without `overwrite`, is an error before any is copied."""
    folders = RunFolders(project.state_directory)
    if wanted.artifact is None:
        found = list(_walk(folders.path(wanted.run_id)))
    elif _is_away(folders, wanted.run_id, wanted.artifact):
        yield from _fetch(project, wanted, wanted.artifact, around)
        return
    else:
        found = [find_artifact(project, wanted.run_id, wanted.artifact)]
    yield from (each for each in found if isinstance(each, LinkLeftOut))
    chosen = [each for each in found if isinstance(each, Artifact)]
    _require_room([wanted.destination / each.path for each in chosen], wanted.overwrite)
    for done, each in enumerate(chosen, 1):
        target = wanted.destination / each.path
        copy_whole(each.file, target)
        yield Copied(each.path, target, each.size, done, len(chosen))


def copy_whole(source: Path, target: Path, digest: str | None = None) -> None:
    """Copy a file: whole under its name, or not there. With `digest`, only if the content has it."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy(source, temporary, digest)
            temporary.replace(target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
    except OSError as error:
        raise storage_error(error, f"copy `{source.name}`", target) from error


def digest_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return digest_of_stream(stream)
    except OSError as error:
        raise storage_error(error, "read the artifact", file) from error


def _walk(folder: Path) -> Iterator[Artifact | LinkLeftOut]:
    """Files below the artifact folders. A link counts as the file it leads to, if the run has it."""
    inside = os.path.realpath(folder)
    for top in FOLDERS:
        for place, folders, names in os.walk(folder / top):
            folders.sort()
            for name in sorted(names):
                file = Path(place, name)
                path = file.relative_to(folder).as_posix()
                real = os.path.realpath(file)
                if os.path.commonpath([inside, real]) != inside or not os.path.isfile(real):
                    yield LinkLeftOut(path)
                else:
                    yield Artifact(path, file, os.path.getsize(real))


def _logs(project: Project, run_id: str) -> list[Artifact]:
    folder = RunFolders(project.state_directory).path(run_id)
    files = [folder / name for name in LOGS]
    return [Artifact(each.name, each, each.stat().st_size) for each in files if each.is_file()]


def _is_away(folders: RunFolders, run_id: str, path: str) -> bool:
    """Whether the file is one of those that the script wrote outside of `outputs/`: they stay on the host."""
    run = read_run(folders, run_id)
    if any(each.path == path for each in run.other_files):
        return True
    is_listed_in_part = run.other_files_count > len(run.other_files)
    return is_listed_in_part and not path.startswith(FOLDERS) and path not in LOGS


def _fetch(project: Project, wanted: Download, path: str, around: Surroundings) -> Iterator[Copied]:
    from holdfast.workbench.fetching import fetch_file

    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "" in parts:
        raise UsageError(f"`{path}` is not a path inside of the run.", "Give it as `history info` shows it.")
    target = wanted.destination / path
    _require_room([target], wanted.overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, "make the folder of the download", target.parent) from error
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        fetch_file(project, wanted.run_id, path, temporary, around)
        temporary.replace(target)
    except OSError as error:
        raise storage_error(error, f"fetch `{path}`", target) from error
    finally:
        temporary.unlink(missing_ok=True)
    yield Copied(path, target, target.stat().st_size, 1, 1)


def _require_room(targets: list[Path], overwrite: bool) -> None:
    in_the_way = [each for each in targets if os.path.lexists(each)]
    folders = [each for each in in_the_way if each.is_dir() and not each.is_symlink()]
    if folders:
        raise UsageError(f"`{folders[0]}` is a folder and in the way.", "Choose another folder with -d.")
    if in_the_way and not overwrite:
        shown = ", ".join(f"`{each}`" for each in in_the_way[:3]) + (" …" if len(in_the_way) > 3 else "")
        raise UsageError(f"Already there: {shown}", "Replace them with --overwrite, or choose another folder with -d.")


def _copy(source: Path, target: Path, digest: str | None) -> None:
    with source.open("rb") as reading, target.open("xb") as writing:
        if digest is None:
            shutil.copyfileobj(reading, writing, CHUNK)
            return
        found = copy_stream(reading, writing)
    if found != digest:
        raise StorageError(
            f"`{source}` is not what was promoted: its content has changed since.",
            "Promote it again if the new content is right: holdfast history promote",
        )
