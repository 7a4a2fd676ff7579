"""Where a run's project lies on its host: a few folders deep in `work`, so that `../x` of a script stays there too, and
the names of its files for those who ask.

`work/x` is `x` of the project, `above/1/x` is `../x`, and `above/2/x` is `../../x`, wherever these are on the disk.
"""

import os
from functools import lru_cache
from typing import List, NamedTuple, Tuple

from holdfast.farside.system.files import read_record
from holdfast.farside.system.layout import relative_parts
from holdfast.farside.system.refusal import Refused

WORK, ABOVE = "work", "above"
_PLAN, _PLACE = "plan.json", "place"
_DEEPEST = 20


class WorkingTree(NamedTuple):
    """`folder` is the run's; `place` that of the project below `work`, empty for runs of earlier versions."""

    folder: str
    place: str = ""

    @property
    def work(self) -> str:
        """All that a script may write to."""
        return os.path.join(self.folder, WORK)

    @property
    def project(self) -> str:
        """The project's top: where the script finds it."""
        return os.path.join(self.work, *self._parts())

    def path_of(self, name: str) -> str:
        """Below the run's folder, of what is asked for by `name`."""
        parts = relative_parts(name)
        place = self._parts()
        if parts[0] == WORK:
            return "/".join([WORK] + place + parts[1:])
        if parts[0] != ABOVE or not place:
            return name
        level = parts[1] if len(parts) > 1 else ""
        if level not in ["%d" % each for each in range(1, len(place) + 1)]:
            raise Refused("refused", "`%s` is no file of the run." % name)
        return "/".join([WORK] + place[: -int(level)] + parts[2:])

    def above(self, path: str) -> str:
        """The name, `above/1/x`, of a file by its path below `work`, which is not in the project."""
        level, rest = self._from_above(path)
        return "/".join((ABOVE, "%d" % level, rest))

    def from_project(self, path: str) -> str:
        """As a script in the project's top names it: `../x`."""
        level, rest = self._from_above(path)
        return "../" * level + rest

    def _parts(self) -> List[str]:
        return self.place.split("/") if self.place else []

    def _from_above(self, path: str) -> Tuple[int, str]:
        place, parts = self._parts(), path.split("/")
        shared = 0
        while shared < min(len(place), len(parts)) - 1 and place[shared] == parts[shared]:
            shared += 1
        return len(place) - shared, "/".join(parts[shared:])


def tree_of(folder: str) -> WorkingTree:
    """The tree of the run in `folder`, by its plan: a script can write to that one, so it is read with care. Thousands
    of files of a run are asked for one by one: of a plan that has not changed, the last answer holds."""
    try:
        status = os.lstat(os.path.join(folder, _PLAN))
    except OSError:
        return WorkingTree(folder)
    return _tree_by(folder, status.st_ino, status.st_ctime_ns)


@lru_cache(maxsize=16)
def _tree_by(folder: str, inode: int, changed: int) -> WorkingTree:
    plan = read_record(os.path.join(folder, _PLAN)) or {}
    return WorkingTree(folder, checked_place(plan.get(_PLACE, "")))


def checked_place(place: object) -> str:
    """Raises Refused for what leads out of `work`."""
    if not isinstance(place, str) or (place and len(relative_parts(place)) > _DEEPEST):
        raise Refused("refused", "The plan names a place `%s` that cannot be one of the project." % (place,))
    return place
