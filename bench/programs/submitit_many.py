"""Submit `print` many times to submitit's local executor, then wait for every result."""

from __future__ import annotations

import sys

import submitit

executor = submitit.LocalExecutor(folder="log")
jobs = [executor.submit(print, "hi") for _ in range(int(sys.argv[1]))]
for job in jobs:
    job.result()
