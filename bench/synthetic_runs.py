"""Run folders as `docs/reference/files.md` describes them, written by the thousand without running anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

METRIC = "accuracy"
THRESHOLD = 0.99
POINTS = 5
BEGIN = 1_700_000_000.0
SPACING = 60.0

_PROJECT = "0" * 32


def write_runs(project: Path, count: int) -> None:
    """A project in which `count` runs have ended, the last of them newest."""
    state = project / ".holdfast"
    (state / "runs").mkdir(parents=True, exist_ok=True)
    (state / ".gitignore").write_text("*\n")
    (project / "s.py").write_text('print("hi")\n')
    (state / "project.json").write_text(json.dumps({"format": 1, "id": _PROJECT}))
    for number in range(count):
        _write_run(state / "runs", number)


def accuracy(number: int) -> float:
    """One run in a hundred is above THRESHOLD, in both stores, so that both find the same."""
    return round((number * 37 % 100) / 100 + 0.001 + number % 7 / 10_000, 6)


def _write_run(runs: Path, number: int) -> None:
    created = BEGIN + number * SPACING
    run_id = f"bench_{int(created * 1000)}"
    folder = runs / run_id
    (folder / "metrics").mkdir(parents=True, exist_ok=True)
    files = {
        "submission.json": json.dumps(_submission(run_id, number, created)),
        "plan.json": json.dumps({"format": 1, "run": run_id}),
        "configuration.json": json.dumps({"run_configuration": {"name": "local"}, "compute_target": {"name": "local"}}),
        "journal.jsonl": _lines(_journal(run_id, number, created)),
        "collected.json": json.dumps({"format": 1, "notes": []}),
        "driver_log": "hi\n",
        "metrics/100-0123456789ab.jsonl": _lines(_metrics(number, created)),
    }
    for name, text in files.items():
        (folder / name).write_text(text)


def _submission(run_id: str, number: int, created: float) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "run_number": number + 1,
        "project_id": _PROJECT,
        "project_name": "bench",
        "script_name": "s.py",
        "arguments": ["--rate", str(number % 10 / 100), "--epochs", "5", "--seed", str(number)],
        "run_configuration": "local",
        "target": "local",
        "target_type": "local",
        "snapshot": f"{number % 50:064x}",
        "created": created,
        "generation": f"{number:032x}",
        "parent_run_id": None,
        "tracked": True,
        "properties": {"holdfast": "0.1.0"},
        "format": 1,
    }


def _journal(run_id: str, number: int, created: float) -> list[Mapping[str, Any]]:
    return [
        {"t": created + 0.1, "e": "created", "format": 1, "run": run_id, "project": _PROJECT, "host": "bench"},
        {"t": created + 0.2, "e": "phase", "name": "files", "text": "writing the snapshot's files"},
        {"t": created + 0.3, "e": "started", "pid": 1000 + number, "argv": ["python", "s.py"]},
        {"t": created + 9.3, "e": "exited", "code": 0, "signal": None},
        {"t": created + 9.4, "e": "files", "outputs": [["model.pkl", 4096]], "others": [], "others_count": 0},
        {
            "t": created + 9.5,
            "e": "ended",
            "reason": "completed",
            "code": 0,
            "signal": None,
            "detail": "",
            "by": "supervisor",
        },
    ]


def _metrics(number: int, created: float) -> list[Mapping[str, Any]]:
    final = accuracy(number)
    points: list[Mapping[str, Any]] = []
    for step in range(POINTS):
        part = (step + 1) / POINTS
        points.append({"t": created + step, "n": "loss", "v": 1 - final * part, "s": step})
        points.append({"t": created + step, "n": METRIC, "v": final * part, "s": step})
    return points


def _lines(records: list[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
