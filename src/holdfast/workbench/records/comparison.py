"""Two runs side by side: their records by `history`, their code by `snapshots`."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.history.records import read_run
from holdfast.history.run_differences import Comparison, RunView, compare_runs
from holdfast.history.run_folder import RunFolders
from holdfast.project.folder import Project


@dataclass(frozen=True)
class CodeDifference:
    """Paths of the two snapshots that differ, and how. `problem`: why that cannot be said."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    diff: str = ""
    problem: str = ""


@dataclass(frozen=True)
class RunComparison:
    """`durations` are those of the two runs, in seconds; `records` has them as text."""

    records: Comparison
    code: CodeDifference
    durations: tuple[float | None, float | None] = (None, None)


def compare(project: Project, first: str, second: str) -> RunComparison:
    """What differs from run `first` to run `second`. A snapshot that is gone is a `problem`, not an error."""
    folders = RunFolders(project.state_directory)
    a, b = _view(folders, first), _view(folders, second)
    snapshots = (a.run.submission.snapshot, b.run.submission.snapshot)
    durations = (a.run.duration, b.run.duration)
    return RunComparison(compare_runs(a, b), _code(project, *snapshots), durations)


def _view(folders: RunFolders, run_id: str) -> RunView:
    return RunView(read_run(folders, run_id), folders.configuration(run_id))


def _code(project: Project, first: str, second: str) -> CodeDifference:
    if first == second:
        return CodeDifference()
    from holdfast.snapshots.snapshot_differences import compare_snapshots, unified_diff
    from holdfast.snapshots.store import ObjectStore

    store = ObjectStore(project.state_directory / "objects")
    try:
        found = compare_snapshots(store, first, second)
        diff = unified_diff(store, first, second)
    except HoldfastError as error:
        return CodeDifference(problem=error.message)
    return CodeDifference(tuple(found.added), tuple(found.removed), tuple(found.changed), diff)
