"""Answer requests on stdin with the seconds that a search in mlflow's store took."""

from __future__ import annotations

import sys
import time

from mlflow import MlflowClient

client = MlflowClient(tracking_uri="sqlite:///mlflow.db")
experiment = client.get_experiment_by_name("bench").experiment_id
for line in sys.stdin:
    begin = time.perf_counter()
    if line.strip() == "newest":
        found = client.search_runs([experiment], max_results=50)
    else:
        found = client.search_runs([experiment], "metrics.accuracy > 0.99", max_results=50_000)
    seconds = time.perf_counter() - begin
    if not found:
        sys.exit("nothing was found")
    print(seconds, flush=True)
