"""What a run wrote: everything in `outputs/`, and elsewhere in its working folder each file that was created or changed
since its command began. The disk's own times of change tell (ctime), which no program can set."""

import os
import stat
import time
from typing import Any, Callable, Dict, List, Optional

from holdfast.farside.system.files import OUTPUTS, walk
from holdfast.farside.system.journal import read_events
from holdfast.farside.system.laid_record import Laid, stamp_of
from holdfast.farside.system.layout import JOURNAL
from holdfast.farside.system.nofollow import Entry

READY = "ready"
"""The event with the moment `since` which what changes is the run's own."""
CACHES = frozenset(
    (
        *("__pycache__", ".ipynb_checkpoints", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
        *(".venv", ".tox", ".nox", ".eggs", "node_modules", ".git", ".hg", ".svn", ".holdfast"),
    )
)
"""Folders that no run wrote for people, at any depth: what programs make again, and what git and Holdfast keep."""
_CACHE_ENDINGS, _CACHE_BEGINNINGS = (".pyc", ".pyo"), (".nfs",)
_LONGEST_WAIT, _STEP = 2.5, 0.001
"""Seconds: the coarsest disks keep times of two seconds."""


def moment_after(last: int, path: str) -> int:
    """When the file `path` was changed, later than `last`: by the clock of the disk that both are on. Where that clock
    was set back meanwhile it is earlier: then too much counts as the run's own, and not too little."""
    give_up = time.monotonic() + _LONGEST_WAIT
    while True:
        moment = os.lstat(path).st_ctime_ns
        if moment > last or time.monotonic() > give_up:
            return moment
        time.sleep(_STEP)
        os.utime(path)


def since_of(folder: str) -> Optional[int]:
    """The moment from the journal of the run in `folder`; None for runs of versions that noted none."""
    try:
        found: List[Dict[str, Any]] = read_events(os.path.join(folder, JOURNAL), b'"%s"' % READY.encode("ascii"))
    except OSError:
        return None
    moments = [event.get("since") for event in found if event["e"] == READY]
    return moments[0] if moments and isinstance(moments[0], int) else None


def own_files(work: str, since: int, problems: List[str], beat: Callable[[], None] = lambda: None) -> List[Entry]:
    """Files and links of the working folder that are the run's own, without `outputs/` and caches; sorted. `problems`
    and `beat` as for `walk`."""
    found = walk(work, problems, beat, lambda place: place != OUTPUTS and os.path.basename(place) not in CACHES)
    return [each for each in found if each[1].st_ctime_ns >= since and _counts(each[0])]


def outputs(work: str, laid: Laid, problems: List[str], beat: Callable[[], None] = lambda: None) -> List[Entry]:
    """What is in `outputs/`, by paths from there; without what was `laid` there from an earlier run and is still as it
    was."""
    found = walk(os.path.join(work, OUTPUTS), problems, beat)
    return [each for each in found if laid.get("%s/%s" % (OUTPUTS, each[0])) != stamp_of(each[1])] if laid else found


def written(work: str, since: int, laid: Laid) -> List[List[Any]]:
    """`[path, size]` of the files and links that the run wrote, sorted; what is in `outputs/` first."""
    found = [(OUTPUTS + "/" + path, status) for path, status in outputs(work, laid, [])]
    kinds = (stat.S_IFREG, stat.S_IFLNK)
    found += own_files(work, since, [])
    return [[path, status.st_size] for path, status in found if stat.S_IFMT(status.st_mode) in kinds]


def _counts(path: str) -> bool:
    name = os.path.basename(path)
    is_cache = name in CACHES or name.endswith(_CACHE_ENDINGS) or name.startswith(_CACHE_BEGINNINGS)
    return not is_cache and path != OUTPUTS  # a link in its place is told of as the folder
