"""Take a snapshot of the project in the current folder; print the seconds."""

from __future__ import annotations

import time
from pathlib import Path

from holdfast.project.folder import ensure_state_directory, find_project
from holdfast.snapshots.take import take_snapshot
from holdfast.workbench.reach.context import read_context

project = find_project(Path.cwd(), read_context().home)
state = ensure_state_directory(project)
begin = time.perf_counter()
take_snapshot(project.root, state)
print(time.perf_counter() - begin)
