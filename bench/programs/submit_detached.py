"""Start `s.py` so many times with each of the run configurations, and leave the runs alone."""

from __future__ import annotations

import sys
from collections import deque

from holdfast.project.folder import find_project
from holdfast.workbench.submitting.planning import Request
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.surroundings import surroundings

count, *configurations = sys.argv[1:]
around = surroundings()
for configuration in configurations:
    for _ in range(int(count)):
        request = Request("s.py", run_configuration=configuration)
        deque(submit(find_project(around.directory), request, around, wait=False), maxlen=0)
