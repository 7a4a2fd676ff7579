"""Submit `s.py` many times from one process, then refresh until every run has ended and its files are fetched."""

from __future__ import annotations

import sys
from collections import deque

from holdfast.history.index import Index
from holdfast.project.folder import find_project
from holdfast.workbench.reach.context import read_context
from holdfast.workbench.records.refresh import refresh
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest

count = int(sys.argv[1])
context = read_context()
for _ in range(count):
    deque(submit(find_project(context.directory, context.home), SubmitRequest("s.py"), context, wait=False), maxlen=0)
project = find_project(context.directory, context.home)
index = Index(project.state_directory)
while index.unfinished():
    deque(refresh(project, context), maxlen=0)
completed = sum(run.status.value == "Completed" for run in index.list())
if completed != count:
    sys.exit(f"{completed} runs completed")
