"""Which files of a run's working folder were laid there from an earlier run: `laid.json` in its folder. One that is
still as it was laid is not what the run itself wrote."""

import json
import os
from typing import Any, Dict, Iterable, List, Tuple

from holdfast.farside.system.files import read_record, write_whole

LAID = "laid.json"

Stamp = Tuple[int, int]
"""Inode, and time of change in ns, which no program can set."""


Laid = Dict[str, Stamp]
"""By names as in `working_tree`."""


def write_laid(folder: str, laid: Laid) -> None:
    """In the folder of the run."""
    rows = [[path, *stamp] for path, stamp in sorted(laid.items())]
    write_whole(os.path.join(folder, LAID), json.dumps({"format": 1, "files": rows}))


def read_laid(folder: str) -> Laid:
    """Empty for a run that went on from no other."""
    rows = (read_record(os.path.join(folder, LAID)) or {}).get("files")
    return {row[0]: (row[1], row[2]) for row in _sound(rows)}


def stamp_of(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_ctime_ns


def _sound(rows: object) -> Iterable[List[Any]]:
    if not isinstance(rows, list):
        return []
    return [row for row in rows if isinstance(row, list) and list(map(type, row)) == [str, int, int]]
