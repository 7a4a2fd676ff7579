"""Make mlflow's SQLite store, and fill it with the runs of `bench/synthetic_runs.py`, as mlflow writes them."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from mlflow import MlflowClient

sys.path.append(str(Path(__file__).resolve().parent.parent))

from synthetic_runs import BEGIN, POINTS, SPACING, accuracy

Rows = dict[str, list[dict[str, object]]]


def rows_of(number: int, experiment: int) -> Rows:
    run, begin = f"{number:032x}", int((BEGIN + number * SPACING) * 1000)
    about = {
        "run_uuid": run,
        "name": f"run-{number}",
        "source_type": "LOCAL",
        "source_name": "s.py",
        "entry_point_name": "",
        "user_id": "bench",
        "status": "FINISHED",
        "start_time": begin,
        "end_time": begin + 9300,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": f"mlruns/{experiment}/{run}/artifacts",
        "experiment_id": experiment,
    }
    params = {"rate": str(number % 10 / 100), "epochs": "5", "seed": str(number)}
    tags = {
        "mlflow.user": "bench",
        "mlflow.source.name": "s.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.runName": f"run-{number}",
    }
    points = [
        {"key": key, "value": value, "timestamp": begin + step * 1000, "run_uuid": run, "step": step, "is_nan": False}
        for step in range(POINTS)
        for key, value in series(accuracy(number) * (step + 1) / POINTS)
    ]
    return {
        "runs": [about],
        "params": [{"key": key, "value": value, "run_uuid": run} for key, value in params.items()],
        "tags": [{"key": key, "value": value, "run_uuid": run} for key, value in tags.items()],
        "metrics": points,
        "latest_metrics": points[-2:],
    }


def series(value: float) -> list[tuple[str, float]]:
    return [("loss", 1 - value), ("accuracy", value)]


def insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    names = list(rows[0])
    marks = ", ".join(f":{name}" for name in names)
    connection.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


experiment = int(MlflowClient(tracking_uri="sqlite:///mlflow.db").create_experiment("bench"))
everything: Rows = {}
for number in range(int(sys.argv[1])):
    for table, rows in rows_of(number, experiment).items():
        everything.setdefault(table, []).extend(rows)
with sqlite3.connect("mlflow.db") as connection:
    for table, rows in everything.items():
        insert(connection, table, rows)
