"""Files that ship although a rule leaves them out, because somebody named them: with `--include`, below `Include:`, or
by saying yes when Holdfast asked about them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator

from holdfast.errors import ProjectError
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass, field
from holdfast.project.include_wishes import SPECIAL
from holdfast.shown_text import pasted
from holdfast.snapshots.file_kinds import CACHES, is_secret
from holdfast.snapshots.patterns import Pattern, RuleSet, parse_rules
from holdfast.snapshots.walk import MARK_OF_A_VIRTUAL_ENVIRONMENT, kept
from holdfast.snapshots.warnings import SnapshotWarning, secret_kept_back

_NEVER = (".git", ".holdfast")


@dataclass(frozen=True)
class Include:
    """Globs, each as a line of a `.gitignore` that stands at the project's top: `data/chars/*`, `*.bin`, `data/`.

    `typed`: each must take in a file, and only these may name secrets. `written`: by the run configuration. `agreed`:
    by the answer to a question; `.amlignore` is stronger.
    """

    typed: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()


NOTHING = Include()


@dataclass(frozen=True)
class Included:
    """Relative paths. `kept_back` look like secrets that no glob names; `idle` are globs that take in nothing."""

    paths: dict[str, None] = field(default_factory=dict)
    kept_back: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    warnings: tuple[SnapshotWarning, ...] = ()

    def digest(self) -> str:
        """Empty if no path is included."""
        return hashlib.blake2b(os.fsencode("\0".join(self.paths)), digest_size=20).hexdigest() if self.paths else ""

    def secrets_besides(self, shipped: Collection[str]) -> list[SnapshotWarning]:
        return [secret_kept_back(each) for each in self.kept_back if each not in shipped]


def find_included(root: str, include: Include, rules: RuleSet) -> Included:
    """`rules`: those of `.amlignore`. Raises ProjectError for a typed glob that takes in nothing."""
    typed, written = included(root, include.typed, True), included(root, include.written)
    if typed.idle:
        raise _idle_glob(root, typed.idle[0])
    agreed = map(os.fsdecode, kept(map(os.fsencode, included(root, include.agreed).paths), rules))
    return Included(
        {**typed.paths, **written.paths, **dict.fromkeys(agreed)},
        [*typed.kept_back, *written.kept_back],
        warnings=tuple(_idle_line(each) for each in written.idle),
    )


def included(root: str, globs: Iterable[str], may_name_secrets: bool = False) -> Included:
    """What is on the disk now. Links are taken in as links, and nothing behind them."""
    found = Included()
    for glob in globs:
        if not _Search(root, glob, may_name_secrets, found).run():
            found.idle.append(glob)
    return found


def _idle_line(glob: str) -> SnapshotWarning:
    remedy = "Check its spelling in the run configuration. `*` stays within a folder; `**/` reaches all folders below."
    return SnapshotWarning("", f"`Include: {glob}` matches no file here.", remedy)


def _idle_glob(root: str, glob: str) -> ProjectError:
    plain = glob.strip("/")
    target = real_path(f"{root}/{plain}")
    if os.path.islink(f"{root}/{plain}"):
        return ProjectError(
            f"`{plain}` is a link to a folder, so its files do not ship.",
            f"To send that: --data {pasted(f'{target}:{plain}')}",
        )
    return ProjectError(
        f"No file matches `--include {pasted(glob)}`.",
        "Check its spelling, and quote it so that the shell does not expand it.",
    )


class _Search:
    """The files of one glob."""

    def __init__(self, root: str, glob: str, may_name_secrets: bool, found: Included) -> None:
        self._root, self._found, self._has_any = root, found, False
        line = glob if not glob.startswith(("!", "#")) else f"\\{glob}"
        self._patterns: list[Pattern] = parse_rules(os.fsencode(line.replace("\n", "?")), "")
        self._rules = RuleSet(self._patterns)
        parts = glob.strip("/").split("/")
        self._own_name = parts[-1]
        self._names_secrets = may_name_secrets and is_secret(self._own_name)
        self._is_anchored = bool(self._patterns) and self._patterns[0].anchored
        self._depth = None if not self._is_anchored or "**" in parts else len(parts)
        self._start = self._plain_beginning(parts)

    def run(self) -> bool:
        """Whether it takes in any file, also one that an earlier glob took in, or one that is kept back."""
        if not self._patterns or any(part.lower() in _NEVER for part in self._start.split("/")):
            return False
        pending = [(self._start, False)]
        while pending:
            folder, is_taken = pending.pop()
            pending.extend(self._look_in(folder, is_taken))
        return self._has_any

    def _plain_beginning(self, parts: list[str]) -> str:
        """The folder to start in: no glob with a million files beside it reads them. A link ends it."""
        start = ""
        for part in parts[:-1] if self._is_anchored else ():
            below = f"{start}/{part}" if start else part
            if SPECIAL.search(part) or not os.path.isdir(f"{self._root}/{below}"):
                break
            if os.path.islink(f"{self._root}/{below}"):
                self._take(below)
                break
            start = below
        return start

    def _look_in(self, folder: str, is_taken: bool) -> Iterator[tuple[str, bool]]:
        try:
            with os.scandir(f"{self._root}/{folder}") as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            return
        mark = os.fsdecode(MARK_OF_A_VIRTUAL_ENVIRONMENT)
        if folder != self._start and not is_taken and any(entry.name == mark for entry in entries):
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            is_named = not is_taken and self._decides(path, is_folder)
            if entry.name.lower() in _NEVER or (
                is_folder and entry.name in CACHES and not self._means(entry.name, is_named)
            ):
                continue
            if is_secret(entry.name) and not (is_named and self._names_secrets):
                if is_taken or is_named:
                    self._found.kept_back.append(path)
                    self._has_any = True
            elif is_folder:
                if is_taken or is_named or self._depth is None or path.count("/") + 1 < self._depth:
                    yield path, is_taken or is_named
            elif (is_taken or is_named) and (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                self._take(path)

    def _take(self, path: str) -> None:
        self._found.paths[path] = None
        self._has_any = True

    def _means(self, name: str, is_named: bool) -> bool:
        return is_named and self._own_name == name

    def _decides(self, path: str, is_folder: bool) -> bool:
        whole = os.fsencode(path)
        return self._rules.decide(whole, whole.rpartition(b"/")[2], is_folder) is not None
