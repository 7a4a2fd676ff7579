"""Every point that a run logged, by name, in the order of time; within a process in that of its calls."""

from __future__ import annotations

from pathlib import Path

from holdfast.history.metrics import Record, records


def metric_points(folder: Path) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for record in records(file):
            found.setdefault(record[1], []).append(record)
    return {name: sorted(each, key=lambda record: record[0]) for name, each in found.items()}
