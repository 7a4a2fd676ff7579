"""What git says about a folder: which files, which repositories inside it, which rule ignores a path, which commit."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.frozen import dataclass, field
from holdfast.snapshots.patterns import Pattern, literal

if TYPE_CHECKING:
    import subprocess

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


class GitError(Exception):
    """Git gave no answer; the message is its own last word."""


class GitMissingError(GitError):
    """There is no git on PATH."""


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

    def __init__(self, process: subprocess.Popen[bytes], question: Sequence[bytes], prefix: bytes) -> None:
        import threading

        self._process = process
        self._prefix = prefix
        self._question = question
        self._output = self._errors = b""
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Wait for git. Raises GitError when it did not succeed."""
        self._reader.join()
        if self._process.returncode != 0:
            raise GitError(_last_word(self._errors, self._process.returncode))

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
        self._output, self._errors = self._process.communicate()


def work_tree_of(folder: bytes) -> bytes | None:
    """The nearest folder, this one or above, that has a `.git`: no process is started to find out."""
    while True:
        if os.path.lexists(os.path.join(folder, b".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


@dataclass(frozen=True)
class Git:
    """Git with the variables of the caller; None: those of this process."""

    environment: Mapping[str, str] | None = None

    def ask_for_files(self, folder: bytes, excludes: Sequence[bytes], prefix: bytes = b"") -> PendingGitFiles:
        """Start listing a folder that lies at `prefix` in its work tree. Raises GitError.

        `excludes` are patterns for untracked files, stronger than those of any ignore file.
        """
        arguments = [b"ls-files", b"-z", b"-t", b"--stage", b"--cached", b"--others", b"--exclude-standard"]
        arguments += [b"--exclude=" + each for each in excludes]
        return PendingGitFiles(_start(folder, arguments, self.environment), arguments, prefix)

    def is_tracked(self, folder: bytes, path: bytes) -> bool:
        return bool(self._run(folder, [b"--literal-pathspecs", b"ls-files", b"-z", b"--cached", b"--", path]))

    def ignoring_rule(self, folder: bytes, path: bytes) -> tuple[str, int | None, str] | None:
        """Source, line and pattern of the rule by which git ignores `path`, whether it is tracked or not."""
        question = [b"check-ignore", b"-v", b"-z", b"--no-index", b"--stdin"]
        fields = self._run(folder, question, path + b"\0", no_match=1).split(b"\0")
        if len(fields) < 4 or not fields[0] or fields[2].startswith(b"!"):
            return None
        return os.fsdecode(fields[0]), int(fields[1]) if fields[1].isdigit() else None, os.fsdecode(fields[2])

    def _run(self, folder: bytes, arguments: Sequence[bytes], given: bytes = b"", no_match: int = 0) -> bytes:
        process = _start(folder, arguments, self.environment)
        output, errors = process.communicate(given)
        if process.returncode not in (0, no_match):
            raise GitError(_last_word(errors, process.returncode))
        return output


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


def _start(folder: bytes, arguments: Sequence[bytes], given: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    import subprocess  # costs 10 ms, and only folders under git need it

    variables = os.environ if given is None else given
    environment = {name: value for name, value in variables.items() if name not in _FOREIGN}
    environment.update(LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    command = [b"git", b"-c", b"core.fsmonitor=false", *arguments]
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    except FileNotFoundError as error:
        raise GitMissingError("there is no git on PATH") from error
    except OSError as error:
        raise GitError(f"git could not be started: {error.strerror}") from error


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


def _last_word(errors: bytes, code: int) -> str:
    lines = [line for line in os.fsdecode(errors).splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal:")]
    return (fatal or lines or [f"git ended with code {code}"])[0]


def revision(root: Path) -> str | None:
    """The id of the folder's commit, from git's own files: a process would cost more than the answer. None outside a
    work tree or before the first commit."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            return _head(git)
    return None


def _head(git: Path) -> str | None:
    try:
        if git.is_file():  # a worktree or submodule: the file names the real folder
            named = Path(git.read_text(encoding="utf-8").partition("gitdir:")[2].strip())
            git = named if named.is_absolute() else git.parent / named
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head or None
        name = head.partition(":")[2].strip()
        shared = git / "commondir"
        common = git / shared.read_text(encoding="utf-8").strip() if shared.exists() else git
        loose = common / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        for line in (common / "packed-refs").read_text(encoding="utf-8").splitlines():
            if line.endswith(" " + name):
                return line.split()[0]
    except (OSError, UnicodeDecodeError):
        return None
    return None
