"""Runs as rows of a table: what to show of each, in how few words."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.cli.clock import clock_time
from holdfast.cli.output import Column
from holdfast.cli.terminal import one_line
from holdfast.history.queries import iso_utc
from holdfast.history.verdicts import in_brief as in_brief_of_gpus
from holdfast.model import Reason, Run, signal_name
from holdfast.project.durations import short_duration
from holdfast.workbench.records.silence import Silence

METRICS_SHOWN = 3
NO_SILENCES: Mapping[str, Silence] = {}

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
"""Shown where there is something in it: most projects have no run that could have used one."""


def table(
    runs: Sequence[Run], width: int | None, silences: Mapping[str, Silence] = NO_SILENCES
) -> tuple[list[dict[str, Any]], list[Column], list[str]]:
    """Rows and columns for `Output.show`, with the metrics that most of the runs have; and the titles left out.

    `silences` are those of runs whose host could not be asked. `width` is that of the terminal. Columns that do not
    fit are left out, the least telling first: a run id that is broken over two lines cannot be copied.
    """
    counts = Counter(name for run in runs for name in run.metrics)
    names = [name for name, _ in counts.most_common(METRICS_SHOWN)]
    metrics = [Column(f"metric {name}", name, align="right") for name in names]
    rows = [_row(run, names, silences.get(run.run_id)) for run in runs]
    columns = [*COLUMNS, *([GPU] if any(row["gpu"] for row in rows) else []), *metrics]
    if width is None:
        return rows, columns, []
    chosen = _fitting(columns, rows, width)
    others = [each.title for each in columns if each not in chosen] + [name for name in counts if name not in names]
    return rows, chosen, others


def in_brief(left_out: Sequence[str], width: int) -> str:
    """One line that says which columns are missing, and where they are."""
    where = ": -o json, or a wider terminal"
    for count in range(len(left_out), 0, -1):
        more = f" and {len(left_out) - count} more" if count < len(left_out) else ""
        text = f"Left out: {one_line(', '.join(left_out[:count]))}{more}{where}"
        if len(text) <= width:
            return text
    return f"{len(left_out)} columns are left out{where}"


def how_it_ended(run: Run) -> str:
    """A few words: nothing for a success, the phase while it goes on. What a run waits for, or why it is ended, is a
    sentence of which the beginning is enough."""
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


def status_text(status: str, silence: Silence | None) -> str:
    """The last known status, and that it is no more than that where the host could not be asked."""
    if silence is None:
        return status
    if silence.needs_login:
        return f"{status}, {silence.reason}"
    return f"{status}, unreachable since {clock_time(silence.since)}"


def host_state(silence: Silence) -> dict[str, Any]:
    """The same for programs, beside a `status` that stays as it is."""
    return {"unreachable_since": iso_utc(silence.since), "reason": silence.reason}


def local_time(seconds: float | None) -> str:
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def metric_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return f"[{len(value)} values]"
    return "" if value is None else str(value)


def _fitting(columns: list[Column], rows: list[dict[str, Any]], width: int) -> list[Column]:
    first, *others = [each.key for each in columns if each not in (*COLUMNS, GPU)] or [""]
    telling = ["run_id", "status", "script_name", "gpu", "duration", "reason", first, "start_time_utc", "target"]
    by_key = {each.key: each for each in columns}
    chosen: list[str] = []
    used = -_GAP
    for key in [*telling, "run_number", *others]:
        if key in by_key:
            needed = max(len(by_key[key].title), *(len(str(row[key])) for row in rows)) + _GAP
            if used + needed <= width or not chosen:
                used += needed
                chosen.append(key)
    return [each for each in columns if each.key in chosen]


_GAP = 3
"""Between two columns, as `tables` draws them on a terminal."""


def _row(run: Run, names: list[str], silence: Silence | None) -> dict[str, Any]:
    submission = run.submission
    row = {
        "run_id": run.run_id,
        "run_number": submission.run_number,
        "script_name": submission.script_name,
        "target": submission.target,
        "status": status_text(run.status.value, silence),
        "reason": how_it_ended(run),
        "start_time_utc": local_time(run.started),
        "duration": short_duration(run.duration),
        "gpu": in_brief_of_gpus(run.gpu),
    }
    return row | {f"metric {name}": metric_text(run.metrics.get(name)) for name in names}
