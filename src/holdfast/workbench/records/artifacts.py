"""A run's files: which there are at home, and copies of them for people."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import FarSideError, HoldfastError, StorageError, UnknownName, UsageError
from holdfast.farside.system.folders import walked
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.project.folder import Project
from holdfast.shown_text import pasted
from holdfast.snapshots.store import CHUNK, digest_of_stream
from holdfast.whole_files import set_executable, storage_error, whole
from holdfast.workbench.following.output_choice import Globs
from holdfast.workbench.reach.context import Context
from holdfast.written_files import FILES, FOLDERS, OUTPUTS, UPLOADS, FileSize, path_in_project, path_inside

if TYPE_CHECKING:
    from holdfast.workbench.following.outputs import Fetch

LOGS = ("driver_log", "control_log")
_NAMED, _IN_THE_WAY_NAMED = 20, 10
"""So many files are named where all of them failed, or are there already."""
EVERYTHING = "."
"""The word for all that a run wrote, wherever it is."""


@dataclass(frozen=True)
class Artifact:
    """`path` is relative to the project's top (`outputs/model.pkl`); `file` is where its content lies."""

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
    """A symbolic link that is not copied: it leads out of the run's folder, nowhere, or `to_folder`, to a folder."""

    path: str
    to_folder: bool = False


def artifacts(project: Project, run_id: str) -> tuple[Artifact, ...]:
    """What the run wrote and gave to `holdfast.upload()`, as far as it is at home."""
    folder = RunFolders(project.state_directory).path(run_id)
    return tuple(each for each in _walk(folder) if isinstance(each, Artifact))


def find_artifact(project: Project, run_id: str, path: str) -> Artifact:
    """The artifact that a user means: `outputs/model.pkl`, `model.pkl`, `driver_log`."""
    found = {each.path: each for each in (*artifacts(project, run_id), *_logs(project, run_id))}
    for name in _spellings(path):
        if name in found:
            return found[name]
    raise _unknown(run_id, path, found)


@dataclass(frozen=True)
class DownloadRequest:
    """What to bring where. `wanted` are paths, folders and globs as in `.gitignore`, or EVERYTHING; none: what is at
    home. Each file keeps its path below `destination`, and `../x` is `above/1/x` there. Only where `destination` is the
    project's top, and `wanted` names `../x`, it goes there."""

    run_id: str
    destination: Path
    wanted: tuple[str, ...] = ()
    overwrite: bool = False


def download(project: Project, asked: DownloadRequest, context: Context) -> Iterator[Copied | LinkLeftOut]:
    """Copy artifacts of a run. A file in the way, without `overwrite`, is an error before any is copied; a file that
    cannot be copied does not keep the others from it, and is an error at the end."""
    chosen: list[Artifact | _Away] = _chosen(project, asked, context) if asked.wanted else []
    if not asked.wanted or EVERYTHING in asked.wanted:
        found = list(_walk(RunFolders(project.state_directory).path(asked.run_id)))
        yield from (each for each in found if isinstance(each, LinkLeftOut))
        chosen = chosen or [each for each in found if isinstance(each, Artifact)]
    beside = _beside(project, asked)
    _require_room([_place(asked.destination, each.path, beside) for each in chosen], asked.overwrite)
    failures: list[HoldfastError] = []
    with contextlib.ExitStack() as stack:
        fetch: Fetch | None = None
        for done, each in enumerate(chosen, 1):
            try:
                target = place_in(asked.destination, each.path, beside)
                if isinstance(each, Artifact):
                    copy_whole(each.file, target)
                else:
                    fetch = fetch or stack.enter_context(_fetching(project, asked.run_id, context))
                    with _made_whole(target, f"fetch `{each.path}`") as temporary:
                        fetch(each.path, temporary)
                yield Copied(each.path, target, target.stat().st_size, done, len(chosen))
            except (StorageError, FarSideError) as error:
                failures.append(error)
    if failures:
        raise _together(failures, len(chosen))


def copy_whole(source: Path, target: Path, digest: str | None = None) -> None:
    """Copy a file: whole under its name, or not there. With `digest`, only if the content has it."""
    with _made_whole(target, f"copy `{source.name}`") as temporary:
        _copy(source, temporary, digest)


def place_in(destination: Path, path: str, beside: Globs | None = None) -> Path:
    """Where a file of the run goes: not out of `destination`, unless `beside` takes it in. Raises StorageError for what
    git or Holdfast would read there as their own."""
    if reserved_path([path]) is not None:
        raise StorageError(
            f"`{path}` was not copied: git or Holdfast keeps the name for itself.",
            "Let the script write it under another name, or into an archive.",
        )
    return _place(destination, _checked(path), beside)


def digest_of(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return digest_of_stream(stream)
    except OSError as error:
        raise storage_error(error, "read the artifact", file) from error


def _beside(project: Project, asked: DownloadRequest) -> Globs | None:
    """What of the wishes may lie outside the destination: a machine chooses the names, so `.` alone does not do."""
    names = [each for each in asked.wanted if each.startswith("../")]
    is_top = names and real_path(asked.destination) == real_path(project.root)
    return Globs(names) if is_top else None


def _place(destination: Path, path: str, beside: Globs | None) -> Path:
    is_outside = path.startswith("../") and beside is not None and beside.take_in(path)
    return destination / (path if is_outside else path_inside(path))


def _walk(folder: Path) -> Iterator[Artifact | LinkLeftOut]:
    """Files that the run wrote. A link counts as the file it leads to, if the run has it."""
    inside = real_path(folder)
    for top in FOLDERS:
        for place, folders, names in walked(os.fspath(folder / top)):
            folders.sort()
            for name in (each for each in folders if os.path.islink(os.path.join(place, each))):
                yield LinkLeftOut(_shown(folder, Path(place, name).relative_to(folder).as_posix()), to_folder=True)
            for name in sorted(names):
                file = Path(place, name)
                path = _shown(folder, file.relative_to(folder).as_posix())
                real = _of_outputs(inside, real_path(file))
                if os.path.commonpath([inside, real]) != inside or not os.path.isfile(real):
                    yield LinkLeftOut(path)
                else:
                    yield Artifact(path, Path(real) if file.is_symlink() else file, os.path.getsize(real))


def _shown(folder: Path, path: str) -> str:
    """By its path in the project. What was given to `holdfast.upload()` has the name first."""
    name = path_in_project(path)
    return path if name.startswith(f"{UPLOADS}/") and os.path.lexists(folder / name) else name


def _of_outputs(inside: str, real: str) -> str:
    """Links from the project to its `outputs/` lead to where these lie at home."""
    begin = os.path.join(inside, FILES, OUTPUTS) + os.sep
    return os.path.join(inside, OUTPUTS, real[len(begin) :]) if real.startswith(begin) else real


def _logs(project: Project, run_id: str) -> list[Artifact]:
    folder = RunFolders(project.state_directory).path(run_id)
    files = [folder / name for name in LOGS]
    return [Artifact(each.name, each, each.stat().st_size) for each in files if each.is_file()]


@dataclass(frozen=True)
class _Away:
    """A file that stays on the host: no wish brought it home."""

    path: str


def _chosen(project: Project, asked: DownloadRequest, context: Context) -> list[Artifact | _Away]:
    """Every file that one of the words means, once, in the order of the words."""
    run = read_run(RunFolders(project.state_directory), asked.run_id)
    at_home = (*artifacts(project, asked.run_id), *_logs(project, asked.run_id))
    away = run.other_files + _left(project, run, context)
    if RunFolders(project.state_directory).outputs_are_left(asked.run_id):
        away += run.outputs
    found: dict[str, Artifact | _Away] = {each.path: _Away(each.path) for each in away}
    found |= {each.path: each for each in at_home}
    is_listed_in_part = run.other_files_count > len(run.other_files)
    chosen: dict[str, Artifact | _Away] = {}
    for word in asked.wanted:
        names = _meant(word, found)
        if names or word == EVERYTHING:
            chosen |= {name: found[name] for name in names}
        elif is_listed_in_part and not word.startswith((OUTPUTS, UPLOADS)) and word not in LOGS:
            chosen[word] = _Away(_checked(word))  # the host knows whether it has it
        else:
            raise _unknown(asked.run_id, word, found)
    return list(chosen.values())


def _left(project: Project, run: Run, context: Context) -> tuple[FileSize, ...]:
    """All that does not come home by itself. Of very many files the machine has the list."""
    if run.left.count <= len(run.left.files):
        return run.left.files
    from holdfast.workbench.following import outputs

    return outputs.left_there(project, run.run_id, context)


def _meant(word: str, paths: Iterable[str]) -> list[str]:
    """The path itself, or else all that it takes in as a line of a `.gitignore`: a folder, a glob."""
    if word.rstrip("/") == EVERYTHING:
        return [path for path in paths if path not in LOGS]
    known = list(paths) if word.strip("./") else []
    for name in _spellings(word):
        if name in known:
            return [name]
    for name in _spellings(word):
        globs = Globs([name])
        found = [path for path in known if globs.take_in(path)]
        if found:
            return found
    return []


def _spellings(path: str) -> list[str]:
    wanted = path.replace(os.sep, "/").removeprefix("./")
    return [wanted, *(f"{folder}/{wanted}" for folder in (OUTPUTS, UPLOADS)), wanted.removeprefix(f"{FILES}/")]


def _unknown(run_id: str, path: str, valid: Iterable[str]) -> UnknownName:
    return UnknownName(
        "artifact",
        path,
        valid,
        f"All of them: holdfast history info -r {pasted(run_id)}",
        place=f"run {run_id}",
    )


def _checked(path: str) -> str:
    parts = path_inside(path).split("/")
    if path.startswith("/") or ".." in parts or "" in parts:
        raise UsageError(f"`{path}` is not a path inside of the run.", "Give it as `history info` shows it.")
    return path


def _fetching(project: Project, run_id: str, context: Context) -> contextlib.AbstractContextManager[Fetch]:
    from holdfast.workbench.following import outputs  # only where something is not at home

    return outputs.fetching(project, run_id, context)


@contextlib.contextmanager
def _made_whole(target: Path, doing: str) -> Iterator[Path]:
    """Gives the name under which to write; the file has its own when the block is left, or is not there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as temporary:
            yield temporary
    except OSError as error:
        raise storage_error(error, doing, target) from error


def _together(failures: list[HoldfastError], count: int) -> HoldfastError:
    if len(failures) == 1:
        return failures[0]
    lines = [f"  {each.message}" for each in failures[:_NAMED]]
    if len(failures) > _NAMED:
        lines.append(f"  and {len(failures) - _NAMED} more")
    hints = dict.fromkeys(each.hint for each in failures)
    return StorageError(f"{len(failures)} of {count} files were not copied:", "\n".join(hints), lines)


def _require_room(targets: list[Path], overwrite: bool) -> None:
    in_the_way = [each for each in targets if os.path.lexists(each)]
    folders = [each for each in in_the_way if each.is_dir() and not each.is_symlink()]
    if folders:
        raise UsageError(f"`{folders[0]}` is a folder and in the way.", "Choose another folder with -d.")
    if len(set(targets)) < len(targets):
        twice = Counter(targets).most_common(1)[0][0]
        raise UsageError(f"Two files of the run would both become `{twice}`.", "Name one of them.")
    if in_the_way and not overwrite:
        more = len(in_the_way) - _IN_THE_WAY_NAMED
        shown = ", ".join(f"`{each}`" for each in in_the_way[:_IN_THE_WAY_NAMED])
        shown += f" and {more} more" if more > 0 else ""
        raise UsageError(f"Already there: {shown}", "Replace them with --overwrite, or choose another folder with -d.")


def _copy(source: Path, target: Path, digest: str | None) -> None:
    with source.open("rb") as reading, target.open("xb") as writing:
        set_executable(target, bool(os.fstat(reading.fileno()).st_mode & stat.S_IXUSR))
        if digest is None:
            shutil.copyfileobj(reading, writing, CHUNK)
            return
        found = digest_of_stream(reading, writing)
    if found != digest:
        raise StorageError(
            f"`{source}` is not what was promoted: its content has changed since.",
            "Promote it again if the new content is right: holdfast history promote",
        )
