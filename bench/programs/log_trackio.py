"""Log scalars with trackio into its local database; print calls per second, `stored` or the `calls` alone."""

from __future__ import annotations

import os
import sys
import tempfile
import time

count, until = int(sys.argv[1]), sys.argv[2]
with tempfile.TemporaryDirectory() as folder:
    os.environ["TRACKIO_DIR"] = folder
    import trackio

    trackio.init(project="bench", auto_log_gpu=False, auto_log_cpu=False)
    begin = time.perf_counter()
    for step in range(count):
        trackio.log({"loss": step / 7}, step=step)
    calls = time.perf_counter() - begin
    trackio.finish()
    stored = time.perf_counter() - begin
print(count / (stored if until == "stored" else calls))
