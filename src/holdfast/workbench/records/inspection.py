"""Everything that is known about one run, and two runs side by side, for the pages that show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.history.gpu_series import Series, read_series
from holdfast.history.index import Filter, Index
from holdfast.history.metrics import MetricSummary, summarize
from holdfast.history.records import read_run
from holdfast.history.run_differences import Comparison, RunView, compare_runs
from holdfast.history.run_folder import RunFolders
from holdfast.model import Run, UseState
from holdfast.project.folder import Project
from holdfast.workbench.records.artifacts import Artifact, artifacts


@dataclass(frozen=True)
class Inspection:
    run: Run
    configuration: Mapping[str, Any]
    artifacts: tuple[Artifact, ...]
    metrics: tuple[MetricSummary, ...]
    children: tuple[str, ...]
    gpus: tuple[Series, ...] = ()


def inspect(project: Project, run_id: str, is_drawn: bool = True) -> Inspection:
    """`is_drawn`: for people. Programs do not get what the GPUs did over time, which may be much to read."""
    state = project.state_directory
    folders = RunFolders(state)
    children = Index(state).list(only=Filter(parent=run_id))
    run = read_run(folders, run_id)
    are_drawn = is_drawn and (run.gpu is None or run.gpu.state is not UseState.NOT_ASKED)
    return Inspection(
        run=run,
        configuration=folders.configuration(run_id),
        artifacts=artifacts(project, run_id),
        metrics=tuple(summarize(folders.path(run_id) / "metrics").values()),
        children=tuple(each.run_id for each in reversed(children)),
        gpus=read_series(folders.path(run_id), run.started, run.exited) if are_drawn else (),
    )


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
    a, b = (RunView(read_run(folders, run_id), folders.configuration(run_id)) for run_id in (first, second))
    code = _code(project, a.run.submission.snapshot, b.run.submission.snapshot)
    return RunComparison(compare_runs(a, b), code, (a.run.duration, b.run.duration))


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
