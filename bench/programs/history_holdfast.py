"""Answer requests on stdin with the seconds that a look into the history took."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import jmespath

from holdfast.history.index import Index
from holdfast.history.queries import run_as_dict
from holdfast.project.folder import find_project

state = find_project(Path.cwd()).state_directory
for line in sys.stdin:
    begin = time.perf_counter()
    match line.strip():
        case "newest":
            found = len([run_as_dict(run) for run in Index(state).look(50).runs])
        case "query":
            records = [run_as_dict(run) for run in Index(state).look().runs]
            found = len(jmespath.search("[?accuracy > `0.99`].run_id", records))
        case "best":
            found = len(Index(state).best("accuracy", 50))
        case other:
            sys.exit(f"unknown request {other}")
    seconds = time.perf_counter() - begin
    if not found:
        sys.exit("nothing was found")
    print(seconds, flush=True)
