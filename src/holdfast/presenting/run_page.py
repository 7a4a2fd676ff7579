"""One run on a page: everything of its record, in two columns, what came of it first. And two beside each other: what
differs, section by section, what is the same, and last the code, which may be long."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.frozen import asdict, dataclass
from holdfast.given_files import GivenData
from holdfast.history.metrics import MetricSummary
from holdfast.history.queries import run_in_detail
from holdfast.history.run_differences import Comparison, Difference, flattened
from holdfast.model import GpuUse, Run, UseState
from holdfast.presenting.lines import Column, Row, counted, gibibytes, local_time, metric_text, offset_text
from holdfast.presenting.run_words import fetch_command, notes_of, verdict_remedy
from holdfast.project.quantities import format_size, short_duration
from holdfast.shown_text import pasted
from holdfast.workbench.records.inspection import CodeDifference, Inspection, RunComparison
from holdfast.written_files import FileSize

ROWS_SHOWN = 20
"""Of files and packages. `-o json` has all of them."""
SPELLS_SHOWN = 3


def as_dict(inspection: Inspection) -> dict[str, Any]:
    return run_in_detail(inspection.run) | {
        "attachments": [each.path for each in inspection.artifacts],
        "configuration": dict(inspection.configuration),
        "children": list(inspection.children),
    }


def rows(inspection: Inspection, gpus_over_time: Iterable[str] = ()) -> Iterator[Row]:
    """What people look for first: how it ended and what came of it. What was asked for comes last. `gpus_over_time` is
    a plot as the place has it where this is shown."""
    yield "Run", inspection.run.run_id
    yield from _how_it_went(inspection)
    yield from (("GPU", line) for line in _verdict(inspection.run))
    yield from (("GPU over time", line) for line in gpus_over_time)
    for summary in inspection.metrics:
        yield "Metrics", _metric(summary)
    yield from _files("Outputs", tuple(FileSize(each.path, each.size) for each in inspection.artifacts))
    yield from _left(inspection.run)
    yield from _files("Other files", inspection.run.other_files, inspection.run.other_files_count)
    if inspection.run.other_files_count:
        run_id, names = inspection.run.run_id, [each.path for each in inspection.run.other_files]
        fetch = (
            f"holdfast history download -r {pasted(run_id)} -d DIR --artifact {pasted(names[0] if names else 'PATH')}"
        )
        yield "Other files", f"To fetch one: {fetch}"
    yield from _what_happened(inspection)
    yield from _what_was_asked(inspection)


def data_words(data: GivenData) -> str:
    least = "" if data.is_whole else "at least "
    of = "names and times" if data.is_listing else "contents"
    amount = f"{least}{format_size(data.size)} in {counted(data.files, 'file')}"
    return f"{data.target} is {data.source}: {amount}, {of} {data.digest[:12] or 'unknown'}"


def _left(run: Run) -> Iterator[Row]:
    title = f"Only on {run.submission.target}"
    yield from _files(title, run.left.files, run.left.count)
    if run.left.count:
        yield title, f"To fetch it: {fetch_command(run.run_id, run.left)}"


def _how_it_went(inspection: Inspection) -> Iterator[Row]:
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


def _what_happened(inspection: Inspection) -> Iterator[Row]:
    run = inspection.run
    for note in notes_of(run):
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
        yield "Clock", f"the machine's is {offset_text(run.clock_offset)} this one's; times are the machine's"


def _verdict(run: Run) -> Iterator[str]:
    """Nothing of a run that asked for no GPU and used none."""
    verdict = run.gpu
    if verdict is None or verdict.state is UseState.NOT_ASKED:
        return
    yield verdict.sentence
    yield from verdict_remedy(run).splitlines()
    yield from (_use(each) for each in verdict.devices)
    if verdict.waited is not None:
        yield f"While the script ran, no GPU worked for {100 * verdict.waited:.0f} % of the time."
    spells = sorted(verdict.spells, key=lambda spell: spell[0] - spell[1])[:SPELLS_SHOWN]
    if spells:
        shown = ", ".join(f"{short_duration(end - begin)} after {short_duration(begin)}" for begin, end in spells)
        yield f"Longest without work: {shown}"


def _use(use: GpuUse) -> str:
    parts = [
        *([f"{use.mean:.0f} % mean"] if use.mean is not None else []),
        *([f"{gibibytes(use.peak_memory)} peak"] if use.peak_memory is not None else []),
        "not used" if use.first_use is None else f"first use after {short_duration(use.first_use)}",
        *([f"computed {100 * use.busy:.0f} % of the time"] if use.busy is not None else []),
        *(["leased"] if use.is_leased else []),
    ]
    return f"GPU {use.number}, {use.name or 'unknown'} ({use.uuid or 'unknown UUID'}): {', '.join(parts)}"


def _what_was_asked(inspection: Inspection) -> Iterator[Row]:
    run, submission = inspection.run, inspection.run.submission
    yield "Script", submission.script_name
    if submission.command:
        yield "Command", shlex.join(submission.command)
    if submission.folder:
        yield "Folder", submission.folder
    if submission.arguments:
        yield "Arguments", shlex.join(submission.arguments)
    if submission.earlier is not None:
        yield "From", str(submission.earlier)
    for data in submission.data:
        yield "Data", data_words(data)
    if submission.terminal:
        yield "Terminal", "80 by 24"
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
        yield "Environment", f"{run.environment}, {counted(len(run.packages), 'package')}, {how}"
    if run.python:
        yield "Python", run.python
    if run.packages:
        yield "Packages", ", ".join(_some(run.packages, len(run.packages)))
    yield "Configuration", submission.run_configuration
    settings = flattened(inspection.configuration).items()
    said = [(name, value) for name, value in settings if value not in ("null", "", "{}", "[]")]
    lines = tuple(f"{name}: {value}" for name, value in said if name.rpartition(".")[2] not in _OF_SPARK)
    yield from (("Settings", line) for line in _some(lines, len(lines)))


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


def _files(title: str, files: tuple[FileSize, ...], count: int = 0) -> Iterator[Row]:
    lines = tuple(f"{each.path} ({format_size(each.size)})" for each in files)
    yield from ((title, line) for line in _some(lines, max(count, len(files))))


def _some(lines: tuple[str, ...], count: int) -> Iterator[str]:
    yield from lines[:ROWS_SHOWN]
    if count > min(len(lines), ROWS_SHOWN):
        yield f"… {count - min(len(lines), ROWS_SHOWN)} more: -o json"


@dataclass(frozen=True)
class Section:
    """A table of what differs."""

    columns: list[Column]
    rows: list[dict[str, Any]]


def compared_as_dict(comparison: RunComparison) -> dict[str, Any]:
    return asdict(comparison.records) | {"code": asdict(comparison.code)}


def sections(comparison: RunComparison) -> Iterator[Section]:
    """Of what differs; the code is not among them."""
    records = comparison.records
    for title, differences in _differences(comparison).items():
        if differences:
            columns = [Column("name", title), Column("first", records.first), Column("second", records.second)]
            yield Section(columns, [_row(each) for each in differences])
    if records.metrics:
        yield Section(_metric_columns(records), [asdict(each) for each in records.metrics])


def sameness(comparison: RunComparison) -> Iterator[str]:
    """What could not be compared, and what is the same."""
    missing = comparison.records.packages_not_recorded
    if missing:
        yield f"Packages: not recorded for {' and '.join(missing)}."
    same = [title.lower() for title, found in _differences(comparison).items() if not found and title != "Run"]
    if missing:
        same.remove("packages")
    if comparison.code == CodeDifference():
        same.append("code")
    if same:
        yield f"The same: {', '.join(same)}."


def changed_files(code: CodeDifference) -> list[tuple[str, str]]:
    """What became of each file, and its path."""
    files = [("added", code.added), ("removed", code.removed), ("changed", code.changed)]
    return [(word, path) for word, paths in files for path in paths]


def _differences(comparison: RunComparison) -> dict[str, tuple[Difference, ...]]:
    records = comparison.records
    return {
        "Run": tuple(_facts(comparison)),
        "Arguments": records.arguments,
        "Configuration": records.configuration,
        "Packages": records.packages,
    }


def _facts(comparison: RunComparison) -> Iterator[Difference]:
    """As every page shows them: durations that differ by less than that are the same to people."""
    for each in comparison.records.facts:
        if each.name != "duration":
            yield each
            continue
        first, second = (short_duration(seconds) or None for seconds in comparison.durations)
        if first != second:
            yield Difference(each.name, first, second)


def _row(difference: Difference) -> dict[str, Any]:
    known = {name: value for name, value in asdict(difference).items() if value is not None}
    return {"first": "-", "second": "-"} | known


def _metric_columns(records: Comparison) -> list[Column]:
    return [
        Column("name", "Metrics"),
        Column("first", records.first, align="right", format=lambda value: metric_text(value) or "-"),
        Column("second", records.second, align="right", format=lambda value: metric_text(value) or "-"),
        Column("change", "change", align="right", format=lambda value: "" if value is None else f"{value:+.5g}"),
    ]
