"""What a run wrote: everything in `outputs/`, and elsewhere in its working tree each file that was created or changed
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
from holdfast.farside.system.working_tree import WORK, WorkingTree

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


def own_files(project: str, since: int, problems: List[str], beat: Callable[[], None] = lambda: None) -> List[Entry]:
    """Files and links of the project that are the run's own, without `outputs/` and caches; sorted. `problems` and
    `beat` as for `walk`."""
    found = walk(project, problems, beat, lambda place: place != OUTPUTS and os.path.basename(place) not in CACHES)
    # A link in the place of `outputs/` is told of as the folder.
    return [each for each in found if _is_own(each, since) and each[0] != OUTPUTS]


def outputs(tree: WorkingTree, laid: Laid, problems: List[str], beat: Callable[[], None] = lambda: None) -> List[Entry]:
    """What is in `outputs/`, by paths from there; without what was `laid` there from an earlier run and is still as it
    was."""
    found = walk(os.path.join(tree.project, OUTPUTS), problems, beat)
    return [each for each in found if laid.get("%s/%s/%s" % (WORK, OUTPUTS, each[0])) != stamp_of(each[1])]


def files_above(
    tree: WorkingTree, since: int, problems: List[str], beat: Callable[[], None] = lambda: None
) -> List[Entry]:
    """The same of what a script wrote beside the project (`../x`), by paths below `work`."""
    if not tree.place:
        return []
    found = walk(tree.work, problems, beat, lambda place: place != tree.place and os.path.basename(place) not in CACHES)
    return [each for each in found if _is_own(each, since) and each[0] != tree.place]


def written(tree: WorkingTree, since: int, laid: Laid) -> List[List[Any]]:
    """`[path, size]` of the files and links that the run wrote, as a script in the project's top names them; what is in
    `outputs/` first, what is beside the project last."""
    kinds = (stat.S_IFREG, stat.S_IFLNK)
    found = [(OUTPUTS + "/" + path, status) for path, status in outputs(tree, laid, [])]
    found += own_files(tree.project, since, [])
    found += [(tree.from_project(path), status) for path, status in files_above(tree, since, [])]
    return [[path, status.st_size] for path, status in found if stat.S_IFMT(status.st_mode) in kinds]


def _is_own(entry: Entry, since: int) -> bool:
    name = os.path.basename(entry[0])
    is_cache = name in CACHES or name.endswith(_CACHE_ENDINGS) or name.startswith(_CACHE_BEGINNINGS)
    return entry[1].st_ctime_ns >= since and not is_cache
