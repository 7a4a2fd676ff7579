"""Why a file that a script missed was not in the run, and the command that brings it there with all that lies beside
it: a script that gets one file of three may train something else without a word."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run
from holdfast.project.data_wishes import folders_above
from holdfast.project.folder import BUILTIN
from holdfast.project.include_wishes import as_typed
from holdfast.shown_text import pasted
from holdfast.snapshots.file_kinds import is_secret
from holdfast.snapshots.git_files import Git, work_tree_of
from holdfast.snapshots.git_process import GitError
from holdfast.snapshots.ignore import explain, list_files
from holdfast.snapshots.ignored_groups import IgnoredGroup, group_of
from holdfast.snapshots.manifest import decode
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.warnings import shown
from holdfast.workbench.following.named_paths import NamedPath, inside, named_paths
from holdfast.written_files import path_at_home

_RUNS, _QUESTIONS = 50, 5
"""So many earlier runs are searched, and so often git is asked."""
_INSTALLED = "site-packages"
"""In the paths of installed packages, which warnings and tracebacks name."""
_OF_THE_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "var")


def missing_input_sentence(
    root: Path, folders: RunFolders, run: Run, text: str, environment: Mapping[str, str] | None = None
) -> str:
    """Empty if nothing can be said. `text`: the last of the output; `environment` is for git."""
    search = _Search(root, folders, run, environment)
    there = _project_there(folders, run.run_id)
    for name in named_paths(text):
        path = inside(name.path, there, run.submission.folder)
        if path is None:
            found = "" if name.is_module else search.outside(name.path)
        else:
            found = search.inside(path, name)
        if found:
            return found
    return ""


def _project_there(folders: RunFolders, run_id: str) -> str:
    """The end of the project's path on the run's machine, with a slash on both sides."""
    try:
        place = folders.plan(run_id).get("place")
    except HoldfastError:
        place = None
    return "/".join(("", run_id, "work", *([place] if place and isinstance(place, str) else []), ""))


class _Search:
    def __init__(self, root: Path, folders: RunFolders, run: Run, environment: Mapping[str, str] | None) -> None:
        self._root, self._folders, self._run, self._environment = root, folders, run, environment
        self._questions = _QUESTIONS
        self._left: dict[str, frozenset[str]] = {}

    def inside(self, path: str, name: NamedPath) -> str:
        if path in self._shipped or path in self._shipped_folders:
            return ""
        writer = "" if name.is_module else self._writer(path)
        goes_on = f"Run {writer} wrote {shown(path)}.\nGo on from it: {self._going_on(writer)}" if writer else ""
        if os.path.lexists(self._root / path):
            ignored = self._ignored(path)
            return "\n".join((ignored, goes_on)) if writer and self._is_newer(writer, path) else ignored
        if writer:
            return goes_on
        return self._absent(path) if name.is_certain else ""

    def outside(self, name: str) -> str:
        """A path of this machine, or beside the project."""
        place = os.path.normpath(self._root / self._run.submission.folder / name)
        parts = place.strip("/").split("/")
        if "\0" in name or len(parts) < 2 or parts[0] in _OF_THE_SYSTEM or is_secret(parts[-1]):
            return ""
        if _INSTALLED in parts:
            return ""
        if not os.path.exists(place) or os.path.commonpath((place, self._root)) == os.fspath(self._root):
            return ""
        source = place if os.path.isdir(place) else os.path.dirname(place)
        if os.path.commonpath((source, self._root)) == source:  # all of it would be the project, too
            source = place
        target = os.path.basename(source)
        if os.path.lexists(self._root / target):
            target = f"{target}-data"
        rest = os.path.join(target, os.path.relpath(place, source)) if place != source else target
        how = f"Send it, and have the script read {shown(rest)}"
        words = f"{source}:{target}"
        return f"{shown(name)} is on this machine, but not in the run.\n{how}: {self._again('--data', words)}"

    def _ignored(self, path: str) -> str:
        rule = explain(self._root, path, self._environment)
        if rule is None:
            return self._empty(path) if os.path.isdir(self._root / path) else ""
        where = rule.source if rule.line is None else f"{rule.source}:{rule.line}"
        reason = f"{shown(path)} is ignored by `{rule.pattern}` ({where})"
        if reserved_path([path]) is not None:
            return f"{reason}. That name can never ship: copy it to another place in the project."
        group = group_of(self._root, self._shipped, path)
        if group.is_large:
            folder = group.data_folder
            words = f"{as_typed(folder, self._run.submission.folder)}:{folder}"
            return (
                f"{reason}, so it stayed here with all of {shown(folder)} ({group.amount()}).\n"
                f"Send the folder once per machine: {self._again('--data', words)}"
            )
        if not group.count:
            return self._empty(path)
        here = self._run.submission.folder
        include = [word for glob in group.globs for word in ("--include", as_typed(glob, here))]
        them = "it" if group.count == 1 else "them"
        return f"{reason}, so it stayed here{_others(group)}.\nShip {them}: {self._again(*include)}"

    def _absent(self, path: str) -> str:
        """Of a path that is not here either."""
        lower = path.lower()
        other = next((each for each in (*self._shipped, *self._shipped_folders) if each.lower() == lower), None)
        if other is not None:
            return f"The project has {shown(other)}, not {shown(path)}: upper and lower case differ on that machine."
        if self._is_tracked(path):
            here = os.path.relpath(path, self._run.submission.folder or ".")
            why = f"Git tracks {shown(path)}, but it is deleted here, so it did not ship."
            return f"{why}\nRestore it: git restore {pasted(here)}"
        folder = os.path.dirname(path)
        if folder and os.path.isdir(self._root / folder) and folder not in self._shipped_folders:
            return self._empty(folder)
        return ""

    def _empty(self, folder: str) -> str:
        return (
            f"No file of {shown(folder)} ships, so the run does not have the folder.\n"
            f"Create it in the script, or add a file: touch {pasted(f'{folder}/.gitkeep')}"
        )

    def _is_tracked(self, path: str) -> bool:
        top = work_tree_of(os.fsencode(self._root))
        self._questions -= 1
        if top is None or self._questions < 0:
            return False
        try:
            whole = os.fsencode(real_path(self._root / os.path.dirname(path))) + b"/"
            return Git(self._environment).is_tracked(top, (whole + os.fsencode(os.path.basename(path)))[len(top) + 1 :])
        except (GitError, OSError, ValueError):
            return False

    def _writer(self, path: str) -> str:
        """The newest run before this one that wrote it, as far as it is known at home; empty if none did."""
        earlier = [each for each in self._folders.all_ids() if each != self._run.run_id]
        for run_id in earlier[::-1][:_RUNS]:
            if self._is_at_home(run_id, path):
                return run_id
            if path in self._left_by(run_id):
                return run_id
        return ""

    def _left_by(self, run_id: str) -> frozenset[str]:
        """Files, and folders with files, that only the run's machine has. Asked for each path that a script named."""
        if run_id not in self._left:
            found = set[str]()
            for each in self._folders.left_there(run_id).files:
                found.update((each.path, *folders_above(each.path)))
            self._left[run_id] = frozenset(found)
        return self._left[run_id]

    def _is_at_home(self, run_id: str, path: str) -> bool:
        """Also a folder. An empty file is what a script left that failed."""
        try:
            status = os.lstat(self._folders.path(run_id) / path_at_home(path))
        except (OSError, ValueError):
            return False
        return status.st_size > 0 or not stat.S_ISREG(status.st_mode)

    def _is_newer(self, writer: str, path: str) -> bool:
        """Whether what the run wrote is newer than the file here."""
        try:
            there = os.lstat(self._folders.path(writer) / path_at_home(path)).st_mtime
            return there > os.lstat(self._root / path).st_mtime
        except OSError:
            return False

    @cached_property
    def _shipped(self) -> frozenset[str]:
        try:
            manifest = ObjectStore(self._folders.state / "objects").read(self._run.submission.snapshot)
            return frozenset(each.path for each in decode(manifest))
        except HoldfastError:
            listed = list_files(self._root, self._environment).paths
            return frozenset(each for each in listed if os.path.lexists(self._root / each))

    @cached_property
    def _shipped_folders(self) -> frozenset[str]:
        found = {"."}
        for path in self._shipped:
            above = os.path.dirname(path)
            while above and above not in found:
                found.add(above)
                above = os.path.dirname(above)
        return frozenset(found)

    def _again(self, *more: str) -> str:
        """The command that was typed, as far as the record has it, with these options."""
        submission = self._run.submission
        place = [] if submission.run_configuration == BUILTIN else ["-c", submission.run_configuration]
        if submission.target not in (BUILTIN, submission.run_configuration):
            place += ["-t", submission.target]
        typed = os.path.relpath(submission.script_name, submission.folder or ".")
        command = submission.command or (typed, *submission.arguments)
        words = ("holdfast", "submit", *place, *self._before(more[0]), *more, *command)
        return " ".join(pasted(each) for each in words)

    def _going_on(self, writer: str) -> str:
        """With the ignored files and the data that the earlier run was given: a script that lacks them may do
        something else without a word."""
        own = set(self._includes(self._run.run_id))
        more = [word for glob in self._includes(writer) if glob not in own for word in ("--include", glob)]
        targets = {each.target for each in self._run.submission.data}
        try:
            given = self._folders.submission(writer).data
        except HoldfastError:
            given = ()
        for each in given:
            more += ["--data", f"{each.source}:{each.target}"] if each.target not in targets else []
        return self._again("--from", writer, *more)

    def _before(self, option: str) -> Iterator[str]:
        """What the run had beside what ships: the next one would miss it. `option` is given anew."""
        submission = self._run.submission
        if submission.earlier is not None and option != "--from":
            path = f":{submission.earlier.path}" if submission.earlier.path else ""
            yield from ("--from", f"{submission.earlier.run_id}{path}")
        for each in submission.data:
            yield from ("--data", f"{each.source}:{each.target}")
        for glob in self._includes(self._run.run_id):
            yield from ("--include", glob)

    def _includes(self, run_id: str) -> Iterator[str]:
        """The globs that a run was given, as they are typed where this one was."""
        for glob in self._folders.includes(run_id):
            yield as_typed(glob, self._run.submission.folder)


def _others(group: IgnoredGroup) -> str:
    """What stayed with the file that was missed."""
    if not group.names:
        files = "1 file" if group.count == 1 else f"{group.count:,} files"
        return f" with all of {shown(group.folder)} ({files}, {group.amount()})"
    if group.count == 1:
        return f" ({group.amount()})"
    return f" with {group.count - 1} other{'s' if group.count > 2 else ''} ({group.amount()})"
