"""What commands leave in the project of its own runs: the folder of `project restore`, the zip of `diagnostics`."""

from __future__ import annotations

import os
import re

from holdfast.snapshots.patterns import literal

_RUN_ID = re.compile(rb"(.+_[0-9]{13,})(\.zip)?", re.DOTALL)


def copies_of_runs(root: bytes) -> bytes:
    """Ignore rules for them. A name counts if this project has a run that is called so: `data_1521077190506` may be
    anything else."""
    runs = os.path.join(root, b".holdfast", b"runs")
    if not os.path.isdir(runs):
        return b""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return b""  # the listing of the files will say so
    found = []
    for name in names:
        match = _RUN_ID.fullmatch(name)
        if match and b"\n" not in name and os.path.isdir(os.path.join(runs, match[1])):
            found.append(b"/" + literal(name) + (b"" if match[2] else b"/") + b"\n")
    return b"".join(found)
