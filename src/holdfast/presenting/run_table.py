"""Runs as rows of a table: what to show of each, in how few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.frozen import dataclass
from holdfast.history.queries import iso_utc
from holdfast.model import Run
from holdfast.presenting.amounts import local_time, metric_text
from holdfast.presenting.lines import Column
from holdfast.presenting.run_words import ended_by, status_mark, verdict_mark
from holdfast.project.quantities import short_duration
from holdfast.workbench.records.silence import Silence

METRICS_SHOWN = 3

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
TELLING = ("run_id", "status", "script_name", "gpu", "duration", "reason", "", "start_time_utc", "target", "run_number")
"""Which columns are kept where there is no room for all, the most telling first; `` is the first metric."""


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
    """With the metrics that most of the runs have. `silences` are those of runs whose host could not be asked."""
    counts = Counter(name for run in runs for name in run.metrics)
    names = [name for name, _ in counts.most_common(METRICS_SHOWN)]
    metrics = [Column(f"metric {name}", name, align="right") for name in names]
    rows = [_row(run, names, silences.get(run.run_id), now) for run in runs]
    columns = [*COLUMNS, *([GPU] if any(row["gpu"] for row in rows) else []), *metrics]
    return RunTable(rows, columns, [name for name in counts if name not in names])


def host_state(silence: Silence) -> dict[str, Any]:
    """Why a host could not be asked, for programs, beside a `status` that stays as it is."""
    return {"unreachable_since": iso_utc(silence.since), "reason": silence.reason}


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
