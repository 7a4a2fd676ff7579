"""The files of a run as its machine lists them, and what they are called at home."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.errors import HostError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.history.records import MOST_KEPT
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.replies import FilePage, FileRow
from holdfast.project.file_names import unstorable
from holdfast.workbench.following.output_choice import staying
from holdfast.workbench.following.transfer import FarRun
from holdfast.workbench.reach import link
from holdfast.written_files import (
    ABOVE,
    FILES,
    UPLOADS,
    FileSize,
    OutputWishes,
    path_at_home,
    path_in_project,
    path_inside,
)
from holdfast.written_files import OUTPUTS as OUTPUTS_AT_HOME

OUTPUTS, _UPLOADS, _ELSEWHERE = "work/outputs", "uploads", "work"
WRITTEN = (OUTPUTS, _ELSEWHERE, ABOVE)
"""Folders of a run on its host that its script wrote to."""
GIVEN = (_UPLOADS,)
"""What it gave to `holdfast.upload()`."""
AT_HOME = {OUTPUTS: OUTPUTS_AT_HOME, _UPLOADS: UPLOADS, _ELSEWHERE: FILES, ABOVE: ABOVE}
"""What these are called at home; the inner one first."""
_LIMITED = (f"{FILES}/", f"{ABOVE}/")
"""What comes home up to a limit."""
MOST_FILES = 1_000_000
"""Outputs of a run that are listed: they are held in memory."""


class FarFile(NamedTuple):
    """A file (`f`) or link (`l`) of a run, as its host lists it; `near` is its path at home."""

    path: str
    kind: str
    size: int
    mtime_ns: int
    target: str
    is_executable: bool
    near: str

    @property
    def name(self) -> str:
        """For people: files of the working tree by their paths from the project's top."""
        return path_in_project(self.near)

    @property
    def named(self) -> FileSize:
        return FileSize(self.name, self.size)


class Choice(NamedTuple):
    """Which files come home; which files stay on their machine, and why if that is not what the user wished."""

    coming: list[FarFile]
    staying: list[FileSize]
    reasons: dict[str, str]


def list_files(connection: Connection, is_here: bool, run: FarRun, notes: list[str]) -> list[FarFile]:
    """Everything that the run keeps; `notes` gets what cannot come. Raises HostError for too many."""
    found: list[FarFile] = []
    begin = 0
    while True:
        page = _page(connection, is_here, run, begin)
        if begin == 0:
            notes += page.problems
        for row in page.files:
            _add(row, found, notes)
        begin += len(page.files)
        if begin > MOST_FILES:
            raise HostError(
                f"The run has more than {MOST_FILES:,} output files on its machine.", "Pack them there: tar, zip."
            )
        if begin >= page.total or not page.files:
            return found


def choose(files: Sequence[FarFile], wishes: OutputWishes) -> Choice:
    reasons = _unkeepable(files)
    keepable = [each for each in files if each.near not in reasons]
    elsewhere = [each.named for each in keepable if each.near.startswith(_LIMITED)]
    away = {path_at_home(each.path) for each in staying(elsewhere, wishes)}
    left = [each.named for each in files if each.kind == "f" and (each.near in reasons or each.near in away)]
    told = {each.name: reasons[each.near] for each in files if each.near in reasons}
    return Choice([each for each in keepable if each.near not in away], left, told)


def root_of(path: str) -> str | None:
    return next((each for each in AT_HOME if path.startswith(f"{each}/")), None)


def path_there(name: str) -> str:
    """Below the run's folder on its host, of a file by its path from the project's top."""
    return path_inside(name) if name.startswith("../") else f"work/{name}"


def is_below(path: str) -> bool:
    """Whether a path from the far side stays below the folder it is put into. What means something else on this system
    (a backslash, a drive) is one that `unstorable` knows."""
    return not any(part in ("", ".", "..") or "\0" in part for part in path.split("/"))


def _page(connection: Connection, is_here: bool, run: FarRun, begin: int) -> FilePage:
    far = Client(connection)
    if is_here:
        return far.list(run.fields(), tuple(AT_HOME), begin, None).wait()
    return link.wait(far.list(run.fields(), tuple(AT_HOME), begin, link.PULSE), connection, run.host)


def _add(row: FileRow, found: list[FarFile], notes: list[str]) -> None:
    root = root_of(row.path)
    if root is None or not is_below(row.path) or not _is_beside(root, row.path) or row.kind not in ("f", "l"):
        if len(notes) < MOST_KEPT:
            notes.append(f"The machine names a file `{row.path}` that cannot be one of the run's: not fetched.")
        return
    name = row.path[len(root) + 1 :]
    # `holdfast.upload` writes under a name of its own first; a kill can leave one behind.
    if root == _UPLOADS and name.startswith(".unfinished-"):
        return
    found.append(FarFile(*row, f"{AT_HOME[root]}/{name}"))


def _is_beside(root: str, path: str) -> bool:
    """Of what lies beside the project, whether the path says where: `above/1/x`."""
    name = path_in_project(path)
    return root != ABOVE or (name.startswith("../") and path_inside(name) == path)


def _unkeepable(files: Iterable[FarFile]) -> dict[str, str]:
    """By their paths at home, files that cannot be kept here, and why."""
    found = unstorable(each.near for each in files)
    elsewhere = [each.near for each in files if each.near.startswith(_LIMITED)]
    if reserved_path(elsewhere) is not None:
        reserved = [each for each in elsewhere if reserved_path([each]) is not None]
        found |= dict.fromkeys(reserved, "git or Holdfast keeps the name for itself")
    return found
