"""Log scalars with Holdfast as inside a run; print calls per second."""

from __future__ import annotations

import os
import sys
import tempfile
import time

count = int(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    os.environ["HOLDFAST_RUN_ID"] = "bench_1"
    os.environ["HOLDFAST_RUN_DIRECTORY"] = folder
    import holdfast

    holdfast.log("loss", 0.5, step=-1)  # opens the file
    begin = time.perf_counter()
    for step in range(count):
        holdfast.log("loss", step / 7, step=step)
    seconds = time.perf_counter() - begin
    (name,) = os.listdir(os.path.join(folder, "metrics"))
    with open(os.path.join(folder, "metrics", name), "rb") as file:
        written = sum(1 for _ in file)
if written != count + 1:
    sys.exit(f"{written} lines were written")
print(count / seconds)
