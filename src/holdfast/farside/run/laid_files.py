"""What a run goes on from: the files of an earlier one, put into its working folder before its command begins. They
are copies, or share blocks where the disk can do that: what the run changes never reaches the earlier one's."""

import os
import stat
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from holdfast.farside.run.liveness import adjudicate, has_ended
from holdfast.farside.system.file_copies import Copier
from holdfast.farside.system.files import OUTPUTS, find_object, have_same_content, read_json, remove_path, walk
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.laid_record import Stamp, read_laid, stamp_of, write_laid
from holdfast.farside.system.layout import Home, object_path, relative_parts
from holdfast.farside.system.nofollow import Entry, open_below, readlink_below, stat_below
from holdfast.farside.system.own_files import own_files, since_of
from holdfast.farside.system.refusal import Refused

GONE, NOTHING = "not-found", "nothing"
"""Of refusals: the earlier run is not here, or has no such files."""
_NAMED = 5

Beat = Callable[[], None]
Earlier = Dict[str, Any]
"""The plan's `earlier`."""


class _Source(NamedTuple):
    """A file or link to lay: `path` as people know it, `link` what a link says. `reader` is a descriptor that the taker
    closes."""

    path: str
    link: Optional[str]
    reader: int = -1
    mode: int = 0o644
    times: Optional[Tuple[int, int]] = None


class Laid(NamedTuple):
    """`last`: when the disk says that the last of them was changed, in ns; 0 without files."""

    last: int
    notes: List[str]


def working_folder(folder: str) -> str:
    """Of the run in `folder`."""
    return os.path.join(folder, "work")


def what_it_left(home: Home, earlier: Earlier, beat: Beat = lambda: None) -> List[Entry]:
    """Files and links below `path` that the run `earlier` wrote, and those that it went on from itself. Raises Refused
    where it is not here, has not ended, or left nothing there."""
    folder, path = home.run(earlier["project"], earlier["run"]), str(earlier.get("path") or "")
    if not os.path.isdir(folder):
        raise Refused(GONE, "The run `%s` is not on this machine any more." % earlier["run"])
    adjudicate(folder)
    if not has_ended(folder):
        raise Refused(
            "living",
            "The run `%s` has not ended: its files may be half written." % earlier["run"],
            "Wait for it: holdfast logs -f -r %s" % pasted(earlier["run"]),
        )
    found = [each for each in _entries(folder, beat) if _is_below(each[0], path)]
    if not found:
        wrote = "wrote nothing at `%s`" % path if path else "wrote no files"
        raise Refused(
            NOTHING,
            "The run `%s` %s." % (earlier["run"], wrote),
            "What it wrote: holdfast history info -r %s" % pasted(earlier["run"]),
        )
    return found


def lay(home: Home, earlier: Earlier, folder: str, beat: Beat) -> Laid:
    """Into the working folder of the run in `folder`, over the snapshot's files. Raises Refused, or OSError."""
    laying = _Laying(working_folder(folder), Copier(beat))
    try:
        for source in _sources(home, earlier, laying, beat):
            laying.put(source)
    except FileNotFoundError as error:
        raise Refused(
            "storage", "`%s` of the run `%s` went while it was copied." % (error.filename, earlier["run"])
        ) from error
    write_laid(folder, laying.stamps)
    return Laid(max((stamp[1] for stamp in laying.stamps.values()), default=0), laying.notes(earlier["run"]))


def _entries(folder: str, beat: Beat) -> List[Entry]:
    work, problems = working_folder(folder), []  # type: Tuple[str, List[str]]
    found = {"%s/%s" % (OUTPUTS, path): status for path, status in walk(os.path.join(work, OUTPUTS), problems, beat)}
    since = since_of(folder)
    if since is not None:
        found.update(own_files(work, since, problems, beat))
    for path in read_laid(folder):
        try:
            found.setdefault(path, stat_below(work, path))
        except (OSError, Refused):
            continue  # the run removed it
    kinds = (stat.S_IFREG, stat.S_IFLNK)
    return sorted((each for each in found.items() if stat.S_IFMT(each[1].st_mode) in kinds), key=lambda each: each[0])


def _is_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(top + "/")


def _sources(home: Home, earlier: Earlier, laying: "_Laying", beat: Beat) -> Iterator[_Source]:
    if earlier.get("sent"):
        return _sent(home, earlier["sent"])
    if earlier.get("folders"):
        return _of_folders(earlier, beat)
    there = working_folder(home.run(earlier["project"], earlier["run"]))
    laying.renames(there)
    return _below(there, what_it_left(home, earlier, beat), "")


def _of_folders(earlier: Earlier, beat: Beat) -> Iterator[_Source]:
    """What is at home of it, where home is this machine."""
    path = str(earlier.get("path") or "")
    for top, place in earlier["folders"]:
        found = walk(top, [], beat) if os.path.isdir(top) else []
        before = place + "/" if place else ""
        yield from _below(top, [each for each in found if _is_below(before + each[0], path)], before)


def _below(folder: str, entries: List[Entry], before: str) -> Iterator[_Source]:
    for path, status in entries:
        if stat.S_ISLNK(status.st_mode):
            yield _Source(before + path, readlink_below(folder, path))
        elif stat.S_ISREG(status.st_mode):
            times = (status.st_atime_ns, status.st_mtime_ns)
            mode = stat.S_IMODE(status.st_mode) & 0o777
            yield _Source(before + path, None, open_below(folder, path), mode, times)


def _sent(home: Home, manifest: str) -> Iterator[_Source]:
    """What came from where the run was submitted."""
    document = read_json(object_path(home.objects(), manifest))
    if document is None:
        raise Refused("storage", "The earlier run's files that were sent are not here any more.", "Submit again.")
    for path, kind, detail, _ in document["files"]:
        if kind == "l":
            yield _Source(path, detail)
            continue
        found = find_object([home.objects()], detail)
        if found is None:
            raise FileNotFoundError(2, "not here", path)
        reader = os.open(found, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        yield _Source(path, None, reader, 0o755 if kind == "x" else 0o644)


class _Laying:
    def __init__(self, work: str, copier: Copier) -> None:
        self._work, self._copier = work, copier
        self._there = ""
        self._folders: Set[str] = set()
        self._replaced: List[str] = []
        self._left_out: List[str] = []
        self.stamps: Dict[str, Stamp] = {}

    def renames(self, there: str) -> None:
        """Absolute links into the earlier run's working folder lead into this one's."""
        self._there = there

    def put(self, source: _Source) -> None:
        parts = relative_parts(source.path)
        if source.link is not None:
            self._link(source.path, parts, source.link)
            return
        try:
            self._file(source, os.path.join(self._work, *parts), parts)
        finally:
            os.close(source.reader)

    def notes(self, run: str) -> List[str]:
        found = []
        if self._replaced:
            found.append("%s as %s left it, not as in the project." % (_some(self._replaced), run))
        if self._left_out:
            found.append("%s of %s leads out of its folder, and was left out." % (_some(self._left_out), run))
        return found

    def _file(self, source: _Source, target: str, parts: List[str]) -> None:
        self._make_way(source.path, parts, source.reader)
        try:
            writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._copier.copy(source.reader, writer)
                os.fchmod(writer, source.mode)
                if source.times is not None:
                    os.utime(writer, ns=source.times)  # a script may look for the newest
                self.stamps[source.path] = stamp_of(os.fstat(writer))
            finally:
                os.close(writer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, target) from None

    def _link(self, path: str, parts: List[str], says: str) -> None:
        if self._there and (says + "/").startswith(self._there + "/"):
            says = self._work + says[len(self._there) :]
        away = os.path.normpath(os.path.join("/".join(parts[:-1]), says))
        if not os.path.isabs(says) and (away + "/").startswith("../"):
            self._left_out.append(path)
            return
        self._make_way(path, parts, None)
        target = os.path.join(self._work, *parts)
        os.symlink(says, target)
        self.stamps[path] = stamp_of(os.lstat(target))

    def _make_way(self, path: str, parts: List[str], reader: Optional[int]) -> None:
        """What the snapshot has in its place, or in that of a folder on the way, goes: no file is written through a
        link."""
        for count in range(1, len(parts)):
            place = os.path.join(self._work, *parts[:count])
            if place in self._folders:
                continue
            if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
                os.unlink(place)
                self._replaced.append("/".join(parts[:count]))
            os.makedirs(place, exist_ok=True)
            self._folders.add(place)
        target = os.path.join(self._work, *parts)
        if os.path.lexists(target):
            if reader is None or not have_same_content(reader, target):
                self._replaced.append(path)
            remove_path(target)


def _some(paths: List[str]) -> str:
    named = ", ".join("`%s`" % path for path in paths[:_NAMED])
    more = " and %d more" % (len(paths) - _NAMED) if len(paths) > _NAMED else ""
    return named + more
