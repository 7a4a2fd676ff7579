"""What git says about a folder: which files, which repositories inside it, which rule ignores a path, which commit.

A repository is not trusted: its configuration may name programs, remotes and files. None of them is run or asked, and a
file that never ends or begins does not hold us up (docs/decisions/0004-ignore-rules.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from holdfast.frozen import dataclass, field
from holdfast.installed_programs import find_program
from holdfast.project.folders_above import counts_above
from holdfast.regular_files import read_regular
from holdfast.snapshots.git_process import Bounds, GitError, GitMissingError, GitProcess, GitTooLargeError, limited
from holdfast.snapshots.patterns import Pattern, literal

# A hook or an alias that starts us leaves these behind; git would look at another repository or index.
_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)
_SWITCHES = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "safe.bareRepository=explicit",
    "fetch.bundleURI=",
    "credential.helper=",
    "core.askPass=",
    "protocol.allow=never",
)
"""No program of the repository runs, and a folder that only looks like a repository is none. The last four are for a
git that would fetch all the same (2.40 to 2.44 do not know GIT_NO_LAZY_FETCH): no address and no login is tried."""
_CLOSED = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""Nothing is fetched, not even what a partial clone lacks: the first holds for every git, the second for those that
know it (2.45) does so before a process is started."""
_QUIET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class GitFiles:
    """Paths relative to the folder that was asked about.

    `repositories` are folders that git does not look into: submodules, and repositories in the work tree.
    `unopened` are folders that git may not read. `executable` says of each tracked file whether it is, on Windows,
    where the disk does not know.
    """

    tracked: tuple[bytes, ...]
    untracked: tuple[bytes, ...]
    repositories: tuple[bytes, ...]
    unopened: tuple[bytes, ...]
    executable: Mapping[bytes, bool] = field(default_factory=dict)


class PendingGitFiles:
    """A `git ls-files` under way. It is read while it runs: git stops when its pipe is full."""

    def __init__(self, process: GitProcess, question: Sequence[bytes], prefix: bytes) -> None:
        self._process = process
        self._prefix = prefix
        self._question = question
        self._output = self._errors = b""
        self._failure: GitError | None = None
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Wait for git. Raises GitError when it did not succeed."""
        self._reader.join()
        if self._failure is not None:
            raise self._failure

    def fingerprint(self) -> str:
        """Names question and answer: the same name, the same files. Ask for it after `wait`."""
        hashing = hashlib.blake2b(digest_size=20)
        for part in (b"\0".join(self._question), b"\0\0", self._errors, b"\0\0", self._output):
            hashing.update(part)
        return hashing.hexdigest()

    def files(self) -> GitFiles:
        # The names in git's warnings count from the top of the work tree, and not from the folder.
        skip = len(self._prefix) + 1 if self._prefix else 0
        unopened = tuple([path[skip:] for path in _UNOPENED.findall(self._errors)])
        return _parse_listing(self._output, unopened)

    def _drain(self) -> None:
        try:
            self._output, self._errors = self._process.answer()
        except GitError as failure:
            self._failure = failure


def work_tree_of(folder: bytes, project: bytes = b"") -> bytes | None:
    """The nearest folder, this one or above, that has a `.git`: no process is started to find out. None where that is
    above the project (by default `folder`) and a stranger's."""
    own = len(project or folder)
    while True:
        git = os.path.join(folder, b".git")
        if os.path.lexists(git):
            return folder if len(folder) >= own or counts_above(git) else None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


@dataclass(frozen=True)
class Git:
    """Git with the variables of the caller; None: those of this process."""

    environment: Mapping[str, str] | None = None
    bounds: Bounds = Bounds()

    def ask_for_files(self, folder: bytes, excludes: Sequence[bytes], prefix: bytes = b"") -> PendingGitFiles:
        """Start listing a folder that lies at `prefix` in its work tree. Raises GitError.

        `excludes` are patterns for untracked files, stronger than those of any ignore file.
        """
        arguments = [b"ls-files", b"-z", b"-t", b"--stage", b"--cached", b"--others", b"--exclude-standard"]
        arguments += [b"--exclude=" + each for each in excludes]
        top = folder[: -len(prefix) - 1] if prefix else folder
        return PendingGitFiles(self._start(folder, top, arguments), arguments, prefix)

    def is_tracked(self, folder: bytes, path: bytes) -> bool:
        return bool(self._run(folder, [b"--literal-pathspecs", b"ls-files", b"-z", b"--cached", b"--", path]))

    def ignoring_rule(self, folder: bytes, path: bytes) -> tuple[str, int | None, str] | None:
        """Source, line and pattern of the rule by which git ignores `path`, whether it is tracked or not."""
        question = [b"check-ignore", b"-v", b"-z", b"--no-index", b"--stdin"]
        fields = self._run(folder, question, path + b"\0", no_match=1).split(b"\0")
        if len(fields) < 4 or not fields[0] or fields[2].startswith(b"!"):
            return None
        return os.fsdecode(fields[0]), int(fields[1]) if fields[1].isdigit() else None, os.fsdecode(fields[2])

    def _run(self, top: bytes, arguments: Sequence[bytes], given: bytes = b"", no_match: int = 0) -> bytes:
        return self._start(top, top, arguments).answer(given, no_match)[0]

    def _start(self, folder: bytes, top: bytes, arguments: Sequence[bytes]) -> GitProcess:
        """Start git in `folder`, of the work tree `top`, wherever its configuration says that the work tree is."""
        import subprocess  # costs 10 ms, and only folders under git need it

        variables = os.environ if self.environment is None else self.environment
        program = find_program("git", variables)
        if program is None:
            raise GitMissingError("there is no git on PATH")
        environment = {name: value for name, value in variables.items() if name not in _FOREIGN}
        environment.update(_QUIET, **_CLOSED, GIT_WORK_TREE=os.fsdecode(top))
        environment["GIT_CEILING_DIRECTORIES"] = os.fsdecode(os.path.dirname(top))  # not another one further up
        _refuse_odd_commondir(top)
        switches = [os.fsencode(word) for switch in _SWITCHES for word in ("-c", switch)]
        command = limited([os.fsencode(program), b"--no-pager", *switches, *arguments], self.bounds)
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise GitError(f"git could not be started: {error.strerror}") from error
        return GitProcess(process, self.bounds)


def exclude_arguments(patterns: Iterable[Pattern], prefix: bytes) -> list[bytes]:
    """Patterns of a folder `prefix` below the work tree's top, as `--exclude` wants them: from the top."""
    if not prefix:
        return [pattern.text for pattern in patterns]
    base = b"/" + literal(prefix) + b"/"
    found = []
    for pattern in patterns:
        body = pattern.glob.removeprefix(b"/") if pattern.anchored else b"**/" + pattern.glob
        end = b"/" if pattern.directory_only else b""
        found.append((b"!" if pattern.negated else b"") + base + body + end)
    return found


def taken_in_below(path: bytes, patterns: Iterable[Pattern]) -> list[bytes]:
    """The `!` lines of a project, as they read in the repository at `path` inside it.

    Only those without a folder, or with this one spelt out, mean something there. What other lines leave out has
    to be sorted out of git's answer.
    """
    base = literal(path) + b"/"
    found = []
    for pattern in patterns:
        inside = pattern.glob.removeprefix(b"/").removeprefix(base)
        if pattern.negated and not pattern.anchored:
            found.append(pattern.text)
        elif pattern.negated and inside != pattern.glob.removeprefix(b"/"):
            found.append(b"!/" + inside + (b"/" if pattern.directory_only else b""))
    return found


def _refuse_odd_commondir(top: bytes) -> None:
    """Git reads this file to its end, however much that is, before it looks at anything else."""
    with contextlib.suppress(OSError, ValueError):  # git finds no repository either
        shared = _git_folder(Path(os.fsdecode(top), ".git")) / "commondir"
        if not os.path.lexists(shared):
            return
        try:
            read_regular(shared, _MOST_NAMED)
        except OSError as error:
            raise GitTooLargeError(f"`{shared}` is not as git writes it") from error


_GITLINK = b" 160000 "
_UNOPENED = re.compile(rb"^warning: could not open directory '(.*?)/?': ", re.MULTILINE)


def _parse_listing(output: bytes, unopened: tuple[bytes, ...]) -> GitFiles:
    lines = output.split(b"\0")
    lines.pop()
    untracked = [line[2:] for line in lines if line.startswith(b"? ")]
    staged = [line for line in lines if not line.startswith((b"? ", b"S "))]  # S: left out by a sparse checkout
    start = staged[0].index(b"\t") + 1 if staged else 0  # every line has the same head: tag, mode, object, stage
    repositories = [line[start:] for line in staged if line[1:9] == _GITLINK] if _GITLINK in output else []
    tracked = [line[start:] for line in staged]
    executable = {line[start:]: line[2:8] == b"100755" for line in staged} if sys.platform == "win32" else {}
    if repositories:
        linked = set(repositories)
        tracked = [path for path in tracked if path not in linked]
    nested = [path for path in untracked if path.endswith(b"/")]
    if nested:
        repositories += [path[:-1] for path in nested]
        untracked = [path for path in untracked if not path.endswith(b"/")]
    if any(line.startswith(b"M ") for line in staged):
        tracked = list(dict.fromkeys(tracked))  # a path in conflict has up to three stages
    return GitFiles(tuple(tracked), tuple(untracked), tuple(repositories), unopened, executable)


_MOST_NAMED, _MOST_REFS = 4096, 16_000_000
"""Bytes of a file that holds one name, and of all refs."""
_REF = re.compile(r"refs(?:/(?!\.)[^\s/\\:?*\[~^\x00-\x1f]+)+")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision(root: Path) -> str | None:
    """The id of the folder's commit, from git's own files: a process would cost more than the answer. None outside a
    work tree, before the first commit, and where these files are not as git writes them."""
    top = work_tree_of(os.fsencode(root))
    found = None if top is None else _head(Path(os.fsdecode(top), ".git"))
    return found if found is not None and _COMMIT.fullmatch(found) else None


def _head(git: Path) -> str | None:
    try:
        git = _git_folder(git)
        head = _line(git / "HEAD")
        if not head.startswith("ref:"):
            return head
        name = head.partition(":")[2].strip()
        if not _REF.fullmatch(name):
            return None
        shared = git / "commondir"
        common = git / _line(shared) if os.path.exists(shared) else git
        if os.path.isfile(common / name):
            return _line(common / name)
        for line in read_regular(common / "packed-refs", _MOST_REFS).decode("utf-8").splitlines():
            if line.endswith(" " + name):
                return line.split()[0]
    except (OSError, ValueError):
        return None
    return None


def _git_folder(git: Path) -> Path:
    """Of a worktree or submodule, the real folder: `git` is then a file that names it."""
    return git.parent / _line(git).partition("gitdir:")[2].strip() if os.path.isfile(git) else git


def _line(path: Path) -> str:
    return read_regular(path, _MOST_NAMED).decode("utf-8").strip()
