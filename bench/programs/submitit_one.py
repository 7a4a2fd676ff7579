"""Submit `print` to submitit's local executor, wait for its end, show its output."""

from __future__ import annotations

import submitit

executor = submitit.LocalExecutor(folder="log")
job = executor.submit(print, "hi")
job.result()
print(job.stdout())
