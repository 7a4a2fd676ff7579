"""How much Holdfast has put on this host, and taking it away: all of it, or what a refused attach has brought."""

import os
from typing import Any, Dict, List, Set, Tuple

from holdfast.farside.operations import (
    account,
    authorized_keys,  # noqa: F401 - asked for after `purge`, when its file is gone
)
from holdfast.farside.operations.home_lock import Alone
from holdfast.farside.operations.sweep import sweep_containers
from holdfast.farside.run.liveness import alive, lives_on
from holdfast.farside.system.files import names_in, read_json, remove_path, remove_tree
from holdfast.farside.system.folders import walked
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import MARKER, Home
from holdfast.farside.system.refusal import Refused

_LEARNED = ("docker.json", "images")
"""What an attach may have noted of the machine's Docker."""
_BY_HAND = "Detach without --purge, and remove by hand what is Holdfast's in that folder."


def sizes(home: Home) -> Dict[str, Any]:
    """`stored`: name and bytes of what Holdfast has in the home; `runs`: project, how many runs, how many of them
    live."""
    seen: Set[Tuple[int, int]] = set()
    names = [name for name in _known(home) if name != MARKER]
    stored = [[name, _size(os.path.join(home.path, name), seen)] for name in names]
    return {"home": home.path, "stored": stored, "runs": _runs(home.runs())}


def purge(home: Home) -> Dict[str, Any]:
    """Remove all that Holdfast has put here, and the folder if that leaves it empty; `kept`: what is left in it, and
    where links led. Refused while a run lives, and in a folder that is not Holdfast's. What a purge that broke left is
    removed by the next."""
    account.refuse_unmarked_home(home, _BY_HAND)
    if not os.path.isdir(home.path):
        return {"removed": 0, "kept": []}
    _refuse_living(home.runs())
    removed = sum(size for _, size in sizes(home)["stored"])  # takes minutes where there is much
    with Alone(home):
        _refuse_living(home.runs())
        links = _links(home)
        sweep_containers(home)
        _remove_runs(home.runs())
        for name in sorted(_known(home), key=lambda name: name == MARKER):
            remove_path(os.path.join(home.path, name))
        kept = names_in(home.path, is_strict=True)
        if not kept and not os.path.islink(home.path):
            os.rmdir(home.path)
    return {"removed": removed, "kept": kept + links}


def leave(home: Home, path: str) -> Dict[str, Any]:
    """Take back what an attach brings into a folder, this home or another: the far side that runs here, and the mark. A
    folder with anything else of ours in it is in use, and stays as it is; one that holds a user's own things, or was
    there before, loses nothing but those two."""
    other = Home(os.path.expanduser(path))
    names = set(names_in(other.path, is_strict=True))
    is_ours_alone = names_in(other.versions(), is_strict=True) == [account.running_version()] and not os.path.islink(
        other.versions()
    )
    if not is_ours_alone or _is_used(other, names):
        return {"left": False}
    is_made = MARKER in names and not _is_found(other)
    try:
        if "proofs" in names:
            os.rmdir(os.path.join(other.path, "proofs"))
    except OSError:
        return {"left": False}  # of another attach that is under way
    remove_tree(other.versions())
    for name in _LEARNED + ("machine", MARKER):
        remove_path(os.path.join(other.path, name))
    if is_made and not os.path.islink(other.path) and not names_in(other.path, is_strict=True):
        os.rmdir(other.path)
    return {"left": True}


def _is_used(home: Home, names: Set[str]) -> bool:
    """In a user's own folder names say nothing, but for a run's."""
    if account.is_ours(home):
        return any(Home.knows(name) and name not in (MARKER,) + _LEARNED + Home.STATE for name in names)
    runs = [os.path.join(home.runs(), project) for project in names_in(home.runs(), is_strict=True)]
    return any(
        os.path.exists(os.path.join(each, run, "plan.json")) for each in runs for run in names_in(each, is_strict=True)
    )


def _known(home: Home) -> List[str]:
    return [name for name in names_in(home.path, is_strict=True) if Home.knows(name)]


def _runs(folder: str) -> List[List[Any]]:
    found = []
    for project in names_in(folder, is_strict=True):
        runs = [os.path.join(folder, project, name) for name in names_in(os.path.join(folder, project), is_strict=True)]
        runs = [run for run in runs if not os.path.basename(run).startswith(".")]
        found.append([project, len(runs), len(alive(runs))])
    return [each for each in found if each[1]]


def _refuse_living(folder: str) -> None:
    for project in names_in(folder, is_strict=True):
        for name in names_in(os.path.join(folder, project), is_strict=True):
            _refuse_alive(os.path.join(folder, project, name))


def _refuse_alive(run: str) -> None:
    if lives_on(run):
        name = os.path.basename(run)
        raise Refused(
            "living", "The run `%s` is still alive." % name, "Wait for it, or: holdfast cancel -r %s" % pasted(name)
        )


def _links(home: Home) -> List[str]:
    """The targets of our names that are links; what they lead to is not touched."""
    paths = [os.path.join(home.path, name) for name in _known(home)]
    return [os.readlink(path) for path in paths if os.path.islink(path)]


def _remove_runs(folder: str) -> None:
    """Removes runs one by one. Stops at a run that was started where the disk has no locks, and keeps it."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return
    for project in names_in(folder, is_strict=True):
        place = os.path.join(folder, project)
        if os.path.islink(place) or not os.path.isdir(place):
            os.unlink(place)
            continue
        for name in names_in(place, is_strict=True):
            _refuse_alive(os.path.join(place, name))
            remove_path(os.path.join(place, name))
        _remove_empty(place)
    _remove_empty(folder)


def _remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        raise Refused("living", "A run has just begun in `%s`." % folder, "Wait for it, or cancel it.")


def _is_found(home: Home) -> bool:
    """Whether the folder was there before Holdfast was."""
    marker = read_json(home.marker())
    return marker is None or bool(marker.get("found"))


def _size(path: str, seen: Set[Tuple[int, int]]) -> int:
    """Bytes of what lies there. A file with several names counts where it is met first."""
    total = 0
    for folder, _, names in walked(path) if not os.path.islink(path) else []:
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
