"""What a person writes to look into mlflow's history: one search, its runs printed."""

from __future__ import annotations

import sys

from mlflow import MlflowClient

client = MlflowClient(tracking_uri="sqlite:///mlflow.db")
experiment = client.get_experiment_by_name("bench").experiment_id
wanted, most = ("", 50) if sys.argv[1] == "newest" else ("metrics.accuracy > 0.99", 50_000)
for run in client.search_runs([experiment], wanted, max_results=most):
    print("run", run.info.run_id, run.info.status, run.info.start_time, run.data.metrics)
