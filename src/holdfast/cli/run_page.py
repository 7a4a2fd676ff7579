"""One run on a page: everything of its record, in two columns, what came of it first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, TextIO

from holdfast.cli import gpu_page, pages
from holdfast.cli.run_table import local_time, metric_text
from holdfast.history.compare import flattened
from holdfast.history.metrics import MetricSummary
from holdfast.history.queries import run_in_detail
from holdfast.history.verdicts import is_repeated
from holdfast.model import FileSize
from holdfast.project.durations import short_duration
from holdfast.project.sizes import format_size
from holdfast.workbench.records.inspection import Inspection

ROWS_SHOWN = 20
"""Of files and packages. `-o json` has all of them."""


def as_dict(inspection: Inspection) -> dict[str, Any]:
    return run_in_detail(inspection.run) | {
        "attachments": [each.path for each in inspection.artifacts],
        "configuration": dict(inspection.configuration),
        "children": list(inspection.children),
    }


def draw(inspection: Inspection, stream: TextIO) -> None:
    pages.draw(list(_rows(inspection, stream)), stream)


def _rows(inspection: Inspection, stream: TextIO) -> Iterator[tuple[str, str]]:
    """What people look for first: how it ended and what came of it. What was asked for comes last."""
    yield "Run", inspection.run.run_id
    yield from _how_it_went(inspection)
    yield from gpu_page.run_rows(inspection.run, inspection.gpus, stream)
    for summary in inspection.metrics:
        yield "Metrics", _metric(summary)
    yield from _files("Outputs", tuple(FileSize(each.path, each.size) for each in inspection.artifacts))
    yield from _files("Other files", inspection.run.other_files, inspection.run.other_files_count)
    if inspection.run.other_files_count:
        run_id, path = inspection.run.run_id, inspection.run.other_files[:1]
        name = shlex.quote(path[0].path) if path else "PATH"
        yield "Other files", f"To fetch one: holdfast history download -r {run_id} -d DIR --artifact {name}"
    yield from _what_happened(inspection)
    yield from _what_was_asked(inspection)


def _how_it_went(inspection: Inspection) -> Iterator[tuple[str, str]]:
    run = inspection.run
    yield "Status", run.status.value
    if run.phase:
        yield "Phase", run.phase
    if run.ending is not None:
        yield "How it ended", run.how_it_ended()
        for line in run.remedy().splitlines():
            yield "What to do", line
    if run.duration is not None:
        yield "Duration", short_duration(run.duration)


def _what_happened(inspection: Inspection) -> Iterator[tuple[str, str]]:
    run = inspection.run
    for note in (each for each in run.notes if not is_repeated(each, run)):
        yield "Notes", note
    for process in run.ended_processes:
        yield "Processes", f"{process.name} ({process.pid}) ended by {process.signal}"
    for child in inspection.children:
        yield "Children", child
    yield "Submitted", local_time(run.submission.created)
    if run.started is not None:
        yield "Started", local_time(run.started)
    if run.ended is not None:
        yield "Ended", local_time(run.ended)
    if run.clock_offset is not None and round(abs(run.clock_offset), 1):
        yield "Clock", f"the machine's is {clock_text(run.clock_offset)} this one's; times are the machine's"


def clock_text(offset: float) -> str:
    return f"{abs(offset):.1f} s {'ahead of' if offset >= 0 else 'behind'}"


def _what_was_asked(inspection: Inspection) -> Iterator[tuple[str, str]]:
    run, submission = inspection.run, inspection.run.submission
    yield "Script", submission.script_name
    if submission.arguments:
        yield "Arguments", shlex.join(submission.arguments)
    yield "Number", str(submission.run_number)
    if submission.parent_run_id:
        yield "Parent", submission.parent_run_id
    yield "Target", f"{submission.target} ({submission.target_type})"
    yield "Snapshot", submission.snapshot
    for name, value in submission.properties.items():
        yield "Properties", f"{name}: {value}"
    if run.image:
        yield "Image", run.image if run.image_id in (None, run.image) else f"{run.image} ({run.image_id})"
    if run.container:
        yield "Container", f"{run.container}, {_WITH_GPUS if run.has_gpus else 'without GPUs'}"
    if run.environment:
        how = "was there already" if run.built_in is None else f"built for this run in {run.built_in:.1f} s"
        count = f"{len(run.packages)} package{'' if len(run.packages) == 1 else 's'}"
        yield "Environment", f"{run.environment}, {count}, {how}"
    if run.python:
        yield "Python", run.python
    if run.packages:
        yield "Packages", ", ".join(_some(run.packages, len(run.packages)))
    yield "Configuration", submission.run_configuration
    settings = flattened(inspection.configuration).items()
    lines = tuple(f"{name}: {value}" for name, value in settings if _says_something(name, value))
    yield from (("Settings", line) for line in _some(lines, len(lines)))


def _says_something(name: str, value: str) -> bool:
    """Of a run of plain Python: nothing runs Spark yet."""
    return value not in ("null", "", "{}", "[]") and name.rpartition(".")[2] not in _OF_SPARK


_WITH_GPUS = "with the machine's GPUs"
_OF_SPARK = ("spark_submit_location", "yarn_deploy_mode", "spark_dependencies_file", "framework_was_missing")


def _metric(summary: MetricSummary) -> str:
    text = f"{summary.name}: {metric_text(summary.last)}"
    if summary.count < 2:
        return text
    bounds = ""
    if summary.minimum is not None and summary.maximum is not None:
        bounds = f"min {metric_text(summary.minimum)}, max {metric_text(summary.maximum)}, "
    step = "" if summary.last_step is None else f", last at step {summary.last_step}"
    return f"{text} ({bounds}{summary.count} values{step})"


def _files(title: str, files: tuple[FileSize, ...], count: int = 0) -> Iterator[tuple[str, str]]:
    lines = tuple(f"{each.path} ({format_size(each.size)})" for each in files)
    yield from ((title, line) for line in _some(lines, max(count, len(files))))


def _some(lines: tuple[str, ...], count: int) -> Iterator[str]:
    yield from lines[:ROWS_SHOWN]
    if count > min(len(lines), ROWS_SHOWN):
        yield f"… {count - min(len(lines), ROWS_SHOWN)} more: -o json"
