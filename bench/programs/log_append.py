"""Append the same records with `os.write` and `json.dumps` alone; print calls per second."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

count = int(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    fd = os.open(os.path.join(folder, "metrics.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    begin = time.perf_counter()
    for step in range(count):
        record = {"t": time.time(), "n": "loss", "v": step / 7, "s": step}
        os.write(fd, (json.dumps(record) + "\n").encode())
    seconds = time.perf_counter() - begin
    os.close(fd)
print(count / seconds)
