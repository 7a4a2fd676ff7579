"""Words about runs: where one is, how it ended, whether it used its GPUs, what to do; and runs as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from holdfast.frozen import dataclass
from holdfast.history.queries import iso_utc
from holdfast.model import Reason, Run, Status, UseState, Verdict, signal_name
from holdfast.presenting.lines import (
    Column,
    Line,
    Mark,
    Role,
    at_most,
    clock_time,
    counted,
    local_time,
    metric_text,
)
from holdfast.project.quantities import format_size, short_duration
from holdfast.shown_text import one_line, pasted
from holdfast.workbench.reach.contacts import Silence
from holdfast.workbench.records.adoption import FoundState
from holdfast.written_files import ABOVE, FILES, FileSize, LeftThere, path_at_home

TOLD_BY_THE_OUTPUT = (Reason.EXIT_CODE, Reason.SIGNAL)
"""Endings whose cause is in the script's output."""
METRICS_SHOWN, OUTPUTS_SHOWN, PROCESSES_SHOWN, OTHERS_SHOWN = 8, 5, 5, 8
METRIC_COLUMNS = 3
METRIC_DIGITS, METRIC_LENGTH = 6, 60

COLUMNS: tuple[Column, ...] = (
    Column("run_id", "Run"),
    Column("run_number", "No", align="right"),
    Column("script_name", "Script"),
    Column("target", "Target"),
    Column("status", "Status"),
    Column("reason", "Ended by"),
    Column("start_time_utc", "Started"),
    Column("duration", "Duration", align="right"),
)
GPU = Column("gpu", "GPU")
"""Shown if a row has something in it: most projects use no GPU."""
TELLING = ("run_id", "status", "script_name", "gpu", "duration", "reason", "", "start_time_utc", "target", "run_number")
"""Columns to keep where not all fit, the most telling first; `` is the first metric."""
STATUS_ROLES: Mapping[Status, Role] = {
    Status.SUBMITTED: Role.QUIET,
    Status.QUEUED: Role.QUIET,
    Status.PREPARING: Role.ACTIVE,
    Status.RUNNING: Role.ACTIVE,
    Status.COMPLETED: Role.GOOD,
    Status.FAILED: Role.BAD,
    Status.CANCELED: Role.QUIET,
    Status.ABANDONED: Role.DOUBTFUL,
}
VERDICT_ROLES: Mapping[UseState, Role] = {
    UseState.USED: Role.GOOD,
    UseState.PARTLY_USED: Role.DOUBTFUL,
    UseState.NOT_USED: Role.BAD,
    UseState.NOT_ASKED: Role.QUIET,
    UseState.NOT_AVAILABLE: Role.BAD,
    UseState.UNKNOWN: Role.DOUBTFUL,
}


def status_mark(run: Run, silence: Silence | None, now: float) -> Mark:
    """The last known status, marked as such if the host could not be asked."""
    status = run.status.value
    if silence is None:
        return Mark(status, STATUS_ROLES[run.status])
    reason = silence.reason if silence.needs_login else f"unreachable since {clock_time(silence.since, now)}"
    return Mark(f"{status}, {reason}", Role.DOUBTFUL)


def status_sentence(run: Run) -> str:
    """What became of a run that has ended, after how long, and why."""
    took = "" if run.duration is None else f" after {short_duration(run.duration)}"
    return f"Status: {run.status.value}{took}. {run.how_it_ended()}"


def queued_words(said: str) -> str:
    """For a run that its engine has not started yet: what the engine says."""
    return f"queued: {said}" if said else "queued"


def ended_by(run: Run) -> str:
    """A few words: nothing for a success, the phase while the run goes on. Of a sentence about waiting or ending the
    beginning is enough."""
    ending = run.ending
    if ending is None:
        return run.phase.partition(":")[0] if run.phase.startswith(("waiting for ", "being ")) else run.phase
    match ending.reason:
        case Reason.COMPLETED:
            return ""
        case Reason.EXIT_CODE:
            return f"exit code {ending.code}"
        case Reason.SIGNAL:
            return signal_name(ending.signal)
        case Reason.ABANDONED:
            return "not known"
        case _:
            return str(ending.reason.value).replace("-", " ")


def script_and_target(run: Run) -> str:
    """What people know a run by: `train.py on gpu1`."""
    return f"{run.submission.script_name or 'a preparation'} on {run.submission.target}"


def verdict_mark(verdict: Verdict | None) -> Mark | None:
    """A few words for a column; None if there is nothing to say."""
    if verdict is None or verdict.state is UseState.NOT_ASKED:
        return None
    words, role = verdict.state.words, VERDICT_ROLES[verdict.state]
    if verdict.state is UseState.USED:
        means = [each.mean for each in verdict.devices if each.first_use is not None and each.mean is not None]
        return Mark(f"{words} {sum(means) / len(means):.0f} %" if means else words, role)
    return Mark(words, role)


def verdict_text(run: Run) -> str:
    """The sentence and what to do; empty if there is nothing to say."""
    if run.gpu is None or run.gpu.state is UseState.NOT_ASKED:
        return ""
    return f"{run.gpu.sentence} {verdict_remedy(run)}".strip()


def verdict_remedy(run: Run) -> str:
    """What to do about the verdict; empty if its sentence, or how the run ended, says so."""
    verdict, ending = run.gpu, run.ending
    is_said = ending is not None and ending.reason is Reason.NO_GPU and bool(ending.detail)
    return "" if verdict is None or is_said or verdict.remedy in verdict.sentence else verdict.remedy


def notes_of(run: Run) -> list[str]:
    """The notes that the verdict does not repeat."""
    return [each for each in run.notes if not _is_repeated(each, run)]


def ending_lines(
    run: Run, missing_file: str = "", noted: Collection[str] = (), has_output: bool = False
) -> Iterator[Line]:
    """How a run ended, in a few lines; none while it has not. `noted` are notes that were shown already; `has_output`:
    so was the script's output."""
    ending = run.ending
    if ending is None:
        return
    is_told = has_output and ending.reason in TOLD_BY_THE_OUTPUT
    yield Line(status_sentence(run), remedy=missing_file or ("" if is_told else run.remedy()))
    if run.metrics:
        yield Line(_metrics(run))
    if run.outputs and (run.outputs_left or _at_home(run)):
        yield Line(_outputs(run))
    if run.left.count:
        yield _left(run)
    if run.ended_processes:
        names = [f"{each.name} ({each.pid}, {each.signal})" for each in run.ended_processes]
        yield Line(f"Processes left behind were ended: {_first(names, PROCESSES_SHOWN, len(names))}")
    if run.other_files_count:
        yield _others(run)
    yield from (Line(f"note: {each}") for each in notes_of(run) if each not in noted)
    if run.gpu is not None and run.gpu.state is not UseState.NOT_ASKED:
        is_known = any(_is_repeated(each, run) for each in noted)
        yield _verdict(run.gpu, "" if is_known else verdict_remedy(run))


@dataclass(frozen=True)
class RunTable:
    """`others` are metrics that have no column."""

    rows: list[dict[str, Any]]
    columns: list[Column]
    others: list[str]

    def by_worth(self) -> list[str]:
        """Keys of the columns, the most telling first."""
        first, *later = [each.key for each in self.columns if each not in (*COLUMNS, GPU)] or [""]
        keys = {each.key for each in self.columns}
        return [key for key in [*(each or first for each in TELLING), *later] if key in keys]


def table(runs: Sequence[Run], silences: Mapping[str, Silence], now: float) -> RunTable:
    """With the metrics that most runs have. `silences` are those of runs whose host could not be asked."""
    counts = Counter(name for run in runs for name in run.metrics)
    names = [name for name, _ in counts.most_common(METRIC_COLUMNS)]
    metrics = [Column(f"metric {name}", name, align="right") for name in names]
    rows = [_row(run, names, silences.get(run.run_id), now) for run in runs]
    columns = [*COLUMNS, *([GPU] if any(row["gpu"] for row in rows) else []), *metrics]
    return RunTable(rows, columns, [name for name in counts if name not in names])


def host_state(silence: Silence) -> dict[str, Any]:
    """Why a host could not be asked, for programs; `status` stays as last known."""
    return {"unreachable_since": iso_utc(silence.since), "reason": silence.reason}


def _metrics(run: Run) -> str:
    shown = [
        f"{name} {one_line(metric_text(value, METRIC_DIGITS))[:METRIC_LENGTH]}"
        for name, value in sorted(run.metrics.items())
    ]
    return "Metrics: " + ", ".join(shown[:METRICS_SHOWN]) + (" …" if len(shown) > METRICS_SHOWN else "")


def left_words(left: LeftThere) -> str:
    """Names and sizes of files that are only on their machine: `model.bin (2.0 GB) and 3 more, 3.1 GB`."""
    names = [f"{each.path} ({format_size(each.size)})" for each in left.files]
    return _first(names, OUTPUTS_SHOWN, left.count) + (f", {format_size(left.size)}" if left.count > 1 else "")


def fetch_command(run_id: str, left: LeftThere) -> str:
    """For the first of the files, or all if that is how many there are."""
    path = left.files[0].path if left.files else "."
    path = f"./{path}" if path.startswith("-") else path
    return f"holdfast history download {pasted(run_id)} {pasted(path)} -d DIR"


def _at_home(run: Run) -> list[FileSize]:
    left = set(run.left.files)
    return [each for each in run.outputs if each not in left]


def _outputs(run: Run) -> str:
    files = _at_home(run)
    names = _first([each.path for each in files], OUTPUTS_SHOWN, len(files))
    total = format_size(sum(each.size for each in files))
    where = "on the run's machine" if run.outputs_left else f"in .holdfast/runs/{run.run_id}/{_folders(files)}"
    return f"Outputs: {names} ({total}, {where})"


def _folders(files: Sequence[FileSize]) -> str:
    """Files outside `outputs/` lie in folders of their own."""
    tops = {path_at_home(each.path).partition("/")[0] for each in files}
    others = " and ".join(f"{each}/" for each in (FILES, ABOVE) if each in tops)
    return others if tops <= {FILES, ABOVE} else f" and its {others}" if others else ""


def _left(run: Run) -> Line:
    text = f"Only on {run.submission.target}: {left_words(run.left)}"
    return Line(text, remedy=f"To fetch it: {fetch_command(run.run_id, run.left)}")


def _others(run: Run) -> Line:
    names = [each.path for each in run.other_files]
    shown = _first(names, OTHERS_SHOWN, run.other_files_count)
    first = names[0] if names else "PATH"
    fetch = f"holdfast history download -r {pasted(run.run_id)} -d DIR --artifact {pasted(first)}"
    return Line(f"Written outside outputs/ (kept until `clean`): {shown}", remedy=fetch)


def _first(names: list[str], count: int, total: int) -> str:
    more = total - len(names[:count])
    return ", ".join(names[:count]) + (f" and {more} more" if more > 0 else "")


def _verdict(verdict: Verdict, remedy: str) -> Line:
    """The last word about a run."""
    claim, colon, why = verdict.sentence.partition(":")
    return Line(colon + why, remedy=remedy, mark=Mark(claim, VERDICT_ROLES[verdict.state]))


def _is_repeated(note: str, run: Run) -> bool:
    """Whether the verdict repeats a note from before the script started: the same check's sentence and remedy."""
    verdict = run.gpu
    if verdict is None or verdict.state is UseState.NOT_ASKED or not verdict.remedy:
        return False
    said = f"{verdict.sentence.partition(': ')[2]} {verdict.remedy}"
    return note[1:] == said[1:] and note[:1].lower() == said[:1].lower()  # lower case after the colon


def _row(run: Run, names: list[str], silence: Silence | None, now: float) -> dict[str, Any]:
    submission, gpu = run.submission, verdict_mark(run.gpu)
    row = {
        "run_id": run.run_id,
        "run_number": submission.run_number,
        "script_name": submission.script_name,
        "target": submission.target,
        "status": status_mark(run, silence, now).text,
        "reason": ended_by(run),
        "start_time_utc": local_time(run.started),
        "duration": short_duration(run.duration),
        "gpu": gpu.text if gpu else "",
    }
    return row | {f"metric {name}": metric_text(run.metrics.get(name)) for name in names}


_GIT_BRINGS_MORE = "Git tracks this folder: Holdfast will also show runs from later commits as yours."


def taken_over(found: FoundState) -> list[str]:
    """Before a user takes over what came with a copy of a project. Names in it are anybody's."""
    targets = sorted(found.targets.items(), key=lambda each: -each[1])
    shown = [f"{count} on {at_most(one_line(name), 40)}" for name, count in targets[:5]]
    shown += [f"{counted(len(targets) - 5, 'more target')}"] if len(targets) > 5 else []
    shown += [f"{found.unreadable} cannot be read"] if found.unreadable else []
    who = found.influence
    whose = f"It belongs to another account (`{one_line(who.owner)}`), which can change these runs and add others."
    return [
        f"{one_line(found.place)} holds {counted(found.runs, 'run')}{': ' if shown else ''}{', '.join(shown)}.",
        "Holdfast will show them as yours. New runs will prefer the package versions in their locks.",
        *(["Of a copy, they are the runs of the original: `cancel` and `clean` act there, too."] if found.runs else []),
        *([whose] if who.owner else []),
        *(["Other accounts may write there, and could change or add runs."] if who.is_open else []),
        *([_GIT_BRINGS_MORE] if who.is_tracked else []),
    ]
