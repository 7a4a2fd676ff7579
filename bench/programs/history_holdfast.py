"""Answer requests on stdin with the seconds that a look into the history took."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import jmespath

from holdfast.history.index import Index
from holdfast.history.queries import metric_conditions
from holdfast.project.folder import find_project
from holdfast.workbench.reach.context import read_context

QUERY = "[?accuracy > `0.99`].run_id"
state = find_project(Path.cwd(), read_context().home).state_directory
for line in sys.stdin:
    begin = time.perf_counter()
    match line.strip():
        case "newest":
            found = len(Index(state).documents(50).documents)
        case "query":
            records = list(Index(state).documents(metrics=metric_conditions(QUERY)).documents)
            found = len(jmespath.search(QUERY, records))
        case other:
            sys.exit(f"unknown request {other}")
    seconds = time.perf_counter() - begin
    if not found:
        sys.exit("nothing was found")
    print(seconds, flush=True)
