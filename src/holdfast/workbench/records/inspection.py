"""Everything that is known about one run, for the page that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.frozen import dataclass
from holdfast.history.gpu_series import Series, read_series
from holdfast.history.index import Filter, Index
from holdfast.history.metrics import MetricSummary, summarize
from holdfast.history.records import read_run
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
    return Inspection(
        run=run,
        configuration=folders.configuration(run_id),
        artifacts=artifacts(project, run_id),
        metrics=tuple(summarize(folders.path(run_id) / "metrics").values()),
        children=tuple(each.run_id for each in reversed(children)),
        gpus=read_series(folders.path(run_id), run.started, run.exited) if is_drawn and _matters(run) else (),
    )


def _matters(run: Run) -> bool:
    return run.gpu is None or run.gpu.state is not UseState.NOT_ASKED
