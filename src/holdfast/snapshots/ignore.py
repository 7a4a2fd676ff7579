"""Which files of a project ship, and which rule leaves one out.

Inside a git work tree git itself is asked; elsewhere `walk` applies the same semantics. In both ways the
project's own rules come on top: what is built in, then `.amlignore`, whose last matching line decides,
also about files that git tracks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.errors import ProjectError
from holdfast.farside.system import real_paths, reserved_names
from holdfast.frozen import dataclass, field
from holdfast.regular_files import read_regular
from holdfast.snapshots import git_files
from holdfast.snapshots.git_files import Git, GitFiles, PendingGitFiles
from holdfast.snapshots.git_process import GitError, GitMissingError, GitStuckError
from holdfast.snapshots.include_globs import NOTHING, Include, Included, find_included
from holdfast.snapshots.patterns import Pattern, RuleSet, parse_rules, typed_line, with_slashes
from holdfast.snapshots.walk import (
    LONGEST_RULES,
    MARK_OF_A_VIRTUAL_ENVIRONMENT,
    Layer,
    Layers,
    copies_of_runs,
    deciding,
    gitignore_layer,
    is_environment,
    kept,
    layers_of_top,
    walk,
)
from holdfast.snapshots.warnings import SnapshotWarning, reserved_name, shown, special_file, unlisted_by_git

AMLIGNORE = ".amlignore"

_BUILT_IN = b"""\
/docs/
/outputs
__pycache__/
*.pyc
.ipynb_checkpoints/
"""
"""Weaker than `.amlignore`: `!/docs/` there ships the folder."""

_ALWAYS = b"""\
.git
.holdfast
"""
"""Stronger than anything a project can say."""


@dataclass(frozen=True)
class Rule:
    """`source`: a file relative to the project (`src/.gitignore`, `.amlignore`) or `built in`."""

    source: str
    line: int | None
    pattern: str

    def __str__(self) -> str:
        return f"`{self.pattern}` ({self.source}{'' if self.line is None else f', line {self.line}'})"


@dataclass(frozen=True)
class FileListing:
    """Relative paths as `os.fsdecode` gives them, in no order. Some may be gone by the time they are read.

    `fingerprint` names git's answer, where that alone decides and nothing is to be warned of; else empty.
    `executable` is what git knows of it, where the disk does not: on Windows.
    """

    paths: tuple[str, ...]
    warnings: tuple[SnapshotWarning, ...]
    fingerprint: str = ""
    executable: Mapping[str, bool] = field(default_factory=dict)


class PendingListing:
    """A listing under way. Until `finish` the caller is free to work: git has a core of its own."""

    def __init__(self, project: _Project, asked: PendingGitFiles | None, include: Include) -> None:
        self._project = project
        self._asked = asked
        self._include = include

    def finish(self) -> FileListing:
        return self.finish_unless("") or FileListing((), ())  # no answer has an empty fingerprint

    def finish_unless(self, fingerprint: str) -> FileListing | None:
        """The listing, or None when it is the one that had this fingerprint."""
        project, found = self._project, ""
        answer = None
        project.find_included(self._include)
        try:
            if self._asked:
                self._asked.wait()
                found = self._asked.fingerprint() + project.digest_of_included()
                if found == fingerprint:
                    return None
                answer = self._asked.files()
        except GitError as failure:
            project.git_failed(project.root, failure)
        if answer and (answer.tracked or answer.untracked or answer.repositories):
            project.add_git_files(b"", answer)
            return project.listing("" if answer.repositories else found)
        # No answer, or an empty one: the folder is empty, or a repository around it ignores it as a whole.
        project.add_walked(project.root, _layers_above(project.root, project.own))
        return project.listing("")


def begin_listing(
    root: Path, environment: Mapping[str, str] | None = None, more_rules: bytes = b"", include: Include = NOTHING
) -> PendingListing:
    """`environment` is what git is started with; `more_rules` are read as if they stood at the end of `.amlignore`.
    `finish` raises ProjectError for a glob of `include` that was typed and takes in nothing."""
    project = _Project(root, environment, more_rules)
    top = git_files.work_tree_of(project.root)
    if top is None:
        return PendingListing(project, None, include)
    prefix = project.root[len(top) + 1 :]
    excludes = git_files.exclude_arguments(project.own.rules.patterns, prefix)
    try:
        return PendingListing(project, project.git.ask_for_files(project.root, excludes, prefix), include)
    except GitError as failure:
        project.git_failed(top, failure)
        return PendingListing(project, None, include)


def list_files(root: Path, environment: Mapping[str, str] | None = None, more_rules: bytes = b"") -> FileListing:
    """Every file that ships. Raises ProjectError when `root` is not a folder."""
    return begin_listing(root, environment, more_rules).finish()


def explain(root: Path, relative_path: str, environment: Mapping[str, str] | None = None) -> Rule | None:
    """The rule that leaves this path out of a snapshot, or None when nothing does."""
    project = _Project(root, environment)
    path = with_slashes(os.fsencode(os.path.normpath(relative_path)))
    if os.path.isabs(path) or path.split(b"/")[0] in (b".", b".."):
        return None
    path = up_to_link(project.root, path)
    own, reincluded = _explain_by_own_rules(project, path)
    if own is not None:
        return own
    if reincluded:  # git does not know the lines of .amlignore that take something back in
        return _explain_by_gitignore(project, path)
    return _explain_by_rules_of_git(project, path)


def own_rules(root: Path) -> Layer:
    """What is built in and `.amlignore`: what is left out on purpose."""
    return _Project(root, None).own


def up_to_link(root: bytes, path: bytes) -> bytes:
    """The part of `path` that a snapshot knows: a link ships, and what lies behind it does not."""
    parts = path.split(b"/")
    for count in range(1, len(parts)):
        above = b"/".join(parts[:count])
        if os.path.islink(root + b"/" + above):
            return above
    return path


class _Project:
    """A listing in the making."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None, more_rules: bytes = b"") -> None:
        self.root = with_slashes(os.fsencode(real_paths.real_path(root)))
        self.git = Git(environment)
        self._is_git_stuck = False
        if not os.path.isdir(self.root):
            raise ProjectError(f"`{root}` is not a folder.", "Give the project's folder, or change into it.")
        self.warnings: list[SnapshotWarning] = []
        self._files: list[bytes] = []
        self._executable: dict[bytes, bool] = {}
        self._included = Included()
        built_in = _BUILT_IN + copies_of_runs(self.root)
        patterns = [*parse_rules(built_in, "built in", numbered=False), *self._amlignore()]
        patterns += parse_rules(more_rules, AMLIGNORE)
        patterns += parse_rules(_ALWAYS, "built in", numbered=False)
        self.own = Layer(self.root + b"/", RuleSet(patterns))

    def listing(self, fingerprint: str) -> FileListing:
        joined = os.fsdecode(b"\0".join(self._files))  # one conversion for all names: none of them can hold a NUL
        paths = tuple(joined.split("\0")) if joined else ()
        if self._included.paths or self._included.kept_back:
            paths = tuple(dict.fromkeys((*paths, *self._included.paths)))
            self.warnings += self._included.secrets_besides(frozenset(paths))
        if reserved_names.reserved_path(paths) is not None:
            self.warnings += [reserved_name(path) for path in paths if reserved_names.reserved_path([path]) is not None]
            paths = tuple(path for path in paths if reserved_names.reserved_path([path]) is None)
        executable = {os.fsdecode(path): known for path, known in self._executable.items()}
        return FileListing(paths, tuple(self.warnings), "" if self.warnings else fingerprint, executable)

    def find_included(self, include: Include) -> None:
        if include != NOTHING:
            self._included = find_included(os.fsdecode(self.root), include, self.own.rules)
            self.warnings += self._included.warnings

    def digest_of_included(self) -> str:
        return self._included.digest()

    def add_git_files(self, prefix: bytes, answer: GitFiles) -> None:
        """`prefix` is empty, or the folder of a repository inside the project with a slash at its end."""
        if not prefix:
            files = [
                *kept(answer.tracked, self.own.rules),
                *answer.untracked,
            ]  # git applied our rules to the latter
        else:
            files = [*kept([prefix + each for each in answer.tracked + answer.untracked], self.own.rules)]
        self._files += self._without_environments(files)
        self._executable |= {prefix + path: known for path, known in answer.executable.items()}
        for path in answer.unopened:
            self._unopened(prefix + path)
        for path in answer.repositories:
            if path and any(True for _ in kept([prefix + path], self.own.rules, directories=True)):
                self._add_repository(prefix + path)

    def add_walked(self, start: bytes, layers: Layers) -> None:
        found = walk(start, layers, self.own, self._add_repository)
        self._files += found.files
        for path in found.environments:
            self._environment(path)
        for path in found.unopened:
            self._unopened(path)
        for path in found.specials:
            self.warnings.append(special_file(os.fsdecode(path)))

    def git_failed(self, folder: bytes, failure: GitError) -> None:
        if isinstance(failure, GitMissingError):
            return  # reading the .gitignore files ourselves is then what was asked for
        self._is_git_stuck |= isinstance(failure, GitStuckError)  # the next repository would take as long
        self.warnings.append(unlisted_by_git(_relative(folder, self.root), os.fsdecode(folder), failure))

    def _amlignore(self) -> list[Pattern]:
        try:
            return parse_rules(read_regular(Path(os.fsdecode(self.root), AMLIGNORE), LONGEST_RULES), AMLIGNORE)
        except FileNotFoundError:
            return []
        except OSError as error:
            if os.path.isdir(os.path.join(self.root, os.fsencode(AMLIGNORE))):
                return []
            message = f"`{AMLIGNORE}` cannot be read ({error.strerror}), so its rules do not apply."
            remedy = (
                f"chmod u+r {AMLIGNORE}" if isinstance(error, PermissionError) else f"Make {AMLIGNORE} a file of text."
            )
            self.warnings.append(SnapshotWarning(AMLIGNORE, message, remedy))
            return []

    def _add_repository(self, path: bytes) -> bool:
        """A repository inside the project: git is asked there. The answer says that it was dealt with."""
        folder = self.root + b"/" + path
        if not os.path.lexists(folder + b"/.git"):
            self._add_without_git(path, folder)
            return True
        takes_in = git_files.taken_in_below(path, self.own.rules.patterns)
        try:
            if self._is_git_stuck:
                raise GitMissingError
            asked = self.git.ask_for_files(folder, takes_in)
            asked.wait()
        except GitError as failure:
            self.git_failed(folder, failure)
            self.add_walked(folder, layers_of_top(folder + b"/"))
        else:
            self.add_git_files(path + b"/", asked.files())
        return True

    def _add_without_git(self, path: bytes, folder: bytes) -> None:
        """The folder of a submodule that has no `.git`."""
        if not os.path.isdir(folder) or os.path.islink(folder):
            return
        if os.listdir(folder):
            self.add_walked(folder, ())
            return
        name = os.fsdecode(path)
        message = f"The submodule {shown(name)} is empty: its files are not here and do not ship."
        self.warnings.append(SnapshotWarning(name, message, "git submodule update --init"))

    def _without_environments(self, files: list[bytes]) -> list[bytes]:
        end = b"/" + MARK_OF_A_VIRTUAL_ENVIRONMENT
        for mark in [path for path in files if path.endswith(end)]:
            folder = mark[: -len(end)]
            if is_environment(self.own.base + folder + b"/", {MARK_OF_A_VIRTUAL_ENVIRONMENT}, (), self.own):
                files = [path for path in files if not path.startswith(folder + b"/")]
                self._environment(folder)
        return files

    def _environment(self, path: bytes) -> None:
        name, line = os.fsdecode(path), typed_line(path)
        message = f"{shown(name)} is a virtual environment and is left out."
        remedy = f"Write `/{line}/` into {AMLIGNORE} to leave it out without this note, or `!/{line}/` to ship it."
        self.warnings.append(SnapshotWarning(name, message, remedy))

    def _unopened(self, path: bytes) -> None:
        name = os.fsdecode(path)
        if not name:
            raise ProjectError(
                f"{shown(os.fsdecode(self.root))} cannot be read.", "chmod u+rx on it, or ask its owner."
            )
        remedy = f"chmod u+rx on it, or write `/{typed_line(path)}/` into {AMLIGNORE}."
        self.warnings.append(SnapshotWarning(name, f"The folder {shown(name)} cannot be read and is left out.", remedy))


def _layers_above(root: bytes, own: Layer) -> Layers:
    """The rules of a repository around the project, from its top down to just above `root`."""
    top = git_files.work_tree_of(root)
    if top is None:
        return ()
    layers = layers_of_top(top + b"/")
    folder = top
    for part in root[len(top) + 1 :].split(b"/") if root != top else ():
        layers = (*layers, *gitignore_layer(folder + b"/", _relative(folder, root) + "/"))
        folder += b"/" + part
        decision = deciding(folder, True, layers, Layer(own.base, RuleSet(())))
        if decision is not None and not decision.negated:
            return ()  # the repository wants nothing of this project, so the project stands alone
    return layers


def _relative(folder: bytes, root: bytes) -> str:
    return os.fsdecode(os.path.relpath(folder, root))


def _prefixes(root: bytes, path: bytes) -> Iterator[tuple[bytes, bool]]:
    """The absolute paths from the first part down to `path`, and whether each is a folder."""
    parts: Sequence[bytes] = path.split(b"/")
    for count in range(1, len(parts) + 1):
        whole = root + b"/" + b"/".join(parts[:count])
        yield whole, count < len(parts) or (os.path.isdir(whole) and not os.path.islink(whole))


def _explain_by_own_rules(project: _Project, path: bytes) -> tuple[Rule | None, bool]:
    reincluded = False
    for whole, is_directory in _prefixes(project.root, path):
        decision = project.own.decide(whole, os.path.basename(whole), is_directory)
        if decision is not None and not decision.negated:
            return _rule(decision), False
        reincluded = reincluded or decision is not None
        if decision is None and is_directory and os.path.isfile(whole + b"/" + MARK_OF_A_VIRTUAL_ENVIRONMENT):
            return Rule("built in", None, f"a folder with {os.fsdecode(MARK_OF_A_VIRTUAL_ENVIRONMENT)}"), False
    return None, reincluded


def _explain_by_rules_of_git(project: _Project, path: bytes) -> Rule | None:
    try:
        return _explain_by_git(project, path)
    except GitError:
        return _explain_by_gitignore(project, path)


def _explain_by_git(project: _Project, path: bytes) -> Rule | None:
    whole = project.root + b"/" + path
    top = git_files.work_tree_of(os.path.dirname(whole), project.root)
    if top is None:
        raise GitError("not in a work tree")
    if len(top) > len(project.root):  # a repository inside the project: the rules around it come first
        around = _explain_by_rules_of_git(project, top[len(project.own.base) :])
        if around is not None:
            return around
    if len(top) < len(project.root) and project.git.ignoring_rule(top, project.root[len(top) + 1 :]):
        raise GitError("the project is ignored as a whole")
    inside = whole[len(top) + 1 :]
    if project.git.is_tracked(top, inside):
        return None
    found = project.git.ignoring_rule(top, inside)
    if found is None:
        return None
    source, line, pattern = found
    return Rule(_relative(os.path.join(top, os.fsencode(source)), project.root), line, pattern)


def _explain_by_gitignore(project: _Project, path: bytes) -> Rule | None:
    layers = _layers_above(project.root, project.own)
    folder = project.root
    for inside, (whole, is_directory) in enumerate(_prefixes(project.root, path)):
        layers = (
            *layers,
            *gitignore_layer(folder + b"/", os.fsdecode(folder[len(project.own.base) :] + b"/" * (inside > 0))),
        )
        decision = deciding(whole, is_directory, layers, project.own)
        if decision is not None and not decision.negated:
            return _rule(decision)
        folder = whole
    return None


def _rule(pattern: Pattern) -> Rule:
    return Rule(pattern.source, pattern.line, os.fsdecode(pattern.text))
