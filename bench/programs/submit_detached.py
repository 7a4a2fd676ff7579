"""Start `s.py` this many times with each of the run configurations, and leave the runs alone."""

from __future__ import annotations

import sys
from collections import deque

from holdfast.project.folder import find_project
from holdfast.workbench.reach.context import read_context
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest

count, *configurations = sys.argv[1:]
context = read_context()
for configuration in configurations:
    for _ in range(int(count)):
        request = SubmitRequest("s.py", run_configuration=configuration)
        deque(submit(find_project(context.directory, context.home), request, context, wait=False), maxlen=0)
