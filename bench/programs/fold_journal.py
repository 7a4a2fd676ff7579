"""Answer requests on stdin, each the megabytes of a journal, with the seconds that reading the run took."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.project.folder import find_project
from holdfast.workbench.reach.context import read_context

LINES = (
    {"t": 1_700_000_000.0, "e": "note", "text": "a note of a few words"},
    {"t": 1_700_000_000.0, "e": "phase", "name": "environment", "text": "installing 3 of 9 packages"},
    {"t": 1_700_000_000.0, "e": "swept", "processes": [[4242, "python", "SIGTERM"]], "count": 1},
)
data = b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in LINES)
folders = RunFolders(find_project(Path.cwd(), read_context().home).state_directory)
(run_id,) = folders.all_ids()
for line in sys.stdin:
    wanted = int(float(line) * 1_000_000)
    (folders.path(run_id) / "journal.jsonl").write_bytes(data * (wanted // len(data)))
    begin = time.perf_counter()
    read_run(folders, run_id)
    print(time.perf_counter() - begin, flush=True)
