"""Data that a run reads beside its project: a link in its working folder, or a mount in its container. Nothing of it is
copied for a run."""

import os
from typing import Any, Dict, List

from holdfast.farside.system.children import CannotStart
from holdfast.farside.system.files import remove_path
from holdfast.farside.system.kept_data import kept, note_use
from holdfast.farside.system.layout import Home, relative_parts
from holdfast.farside.system.refusal import Refused

LACKING = "data"
"""Of a refusal: something has to be sent first."""

Data = List[Dict[str, Any]]
"""The plan's `data`, with its holes filled."""


def require_data(home: Home, data: Data) -> None:
    """Before a run is started. Raises Refused where something of it was never sent, or was removed."""
    wanted = {str(each["digest"]) for each in data if each.get("digest")}
    lacking = wanted.difference(kept(home)) if wanted else set()
    if lacking:
        raise Refused(LACKING, "%d of the data folders are not on this machine." % len(lacking))


def link_data(home: Home, data: Data, work: str, is_mounted: bool) -> None:
    """Into the working folder `work`. `is_mounted`: a container shows the data, so what it is mounted on is made."""
    for each in data:
        source, place = str(each["source"]), os.path.join(work, *relative_parts(each["target"]))
        if not os.path.exists(source):
            raise CannotStart("the data `%s` is not on the machine `%s`" % (source, os.uname().nodename))
        _make_way(work, os.path.dirname(place), str(each["target"]))
        remove_path(place)  # what an earlier run had there
        if not is_mounted:
            os.symlink(source, place)
        elif os.path.isdir(source):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        if each.get("digest"):
            note_use(home, str(each["digest"]))


def _make_way(work: str, folder: str, target: str) -> None:
    """Through no link: it could lead anywhere."""
    place = work
    for part in os.path.relpath(folder, work).split(os.sep):
        place = os.path.normpath(os.path.join(place, part))
        if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
            raise CannotStart("`%s` is no folder of the run, so no data can be put at `%s`" % (part, target))
        os.makedirs(place, exist_ok=True)
