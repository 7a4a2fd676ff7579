"""How much Holdfast has put on this host, and removing all of it: the whole folder, whoever of the account uses it."""

import os
import time
from typing import Any, Dict, List, Set, Tuple

from holdfast.farside.files import remove_tree
from holdfast.farside.following import is_alive
from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused


def sizes(home: Home) -> Dict[str, Any]:
    """`folders`: name and bytes of what lies in the home; `runs`: project, how many runs, how many of them live."""
    seen: Set[Tuple[int, int]] = set()
    folders = [[name, _size(os.path.join(home.path, name), seen)] for name in _names(home.path)]
    return {"home": home.path, "folders": folders, "runs": _runs(home.runs())}


def purge(home: Home) -> Dict[str, Any]:
    """Remove all that is here. Refused while a run lives. What a purge that broke left is removed by the next."""
    _refuse_living(home.runs())
    # Aside first: a run that somebody starts from now on makes a new folder, and one that began in between is seen.
    aside = os.path.join(home.path, ".purging-%d" % int(time.time() * 1000))
    try:
        os.rename(home.runs(), aside)
    except FileNotFoundError:
        pass
    else:
        try:
            _refuse_living(aside)
        except Refused:
            os.rename(aside, home.runs())
            raise
    removed = sum(size for _, size in sizes(home)["folders"])
    for name in _names(home.path):
        path = os.path.join(home.path, name)
        if os.path.isdir(path) and not os.path.islink(path):
            remove_tree(path)
        else:
            os.unlink(path)
    try:
        os.rmdir(home.path)
    except OSError:
        pass  # a folder that somebody else made for the account, or a new run's
    return {"removed": removed}


def leave(home: Home, path: str) -> Dict[str, Any]:
    """Remove another Holdfast folder of the account that was made a moment ago and holds the far side alone."""
    other = os.path.abspath(os.path.expanduser(path))
    holds = set(_names(other))
    if other == home.path or not holds or holds - {"farside", "proofs"}:
        return {"left": False}
    remove_tree(other)
    return {"left": True}


def _runs(folder: str) -> List[List[Any]]:
    found = []
    for project in _names(folder):
        runs = [os.path.join(folder, project, name) for name in _names(os.path.join(folder, project))]
        runs = [run for run in runs if not os.path.basename(run).startswith(".")]
        found.append([project, len(runs), sum(1 for run in runs if is_alive(run))])
    return [each for each in found if each[1]]


def _refuse_living(folder: str) -> None:
    for project in _names(folder):
        for name in _names(os.path.join(folder, project)):
            run = os.path.join(folder, project, name)
            if is_alive(run):
                raise Refused(
                    "living", "The run `%s` is still alive." % name, "Wait for it, or: holdfast cancel -r %s" % name
                )


def _size(path: str, seen: Set[Tuple[int, int]]) -> int:
    """Bytes of what lies there. A file with several names counts where it is met first."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            inode = (status.st_dev, status.st_ino)
            if status.st_nlink == 1 or inode not in seen:
                total += status.st_size
                seen.add(inode)
    if not os.path.isdir(path) and os.path.lexists(path):
        total = os.lstat(path).st_size
    return total


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
