"""What a run goes on from: the files of an earlier one, put into its working folder before its command begins. They
are copies, or share blocks where the disk can do that: what the run changes never reaches the earlier one's."""

import os
import stat
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from holdfast.farside.run.liveness import adjudicate
from holdfast.farside.system.file_copies import Copier
from holdfast.farside.system.files import OUTPUTS, find_object, have_same_content, read_json, remove_path, walk
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.laid_record import Stamp, read_laid, stamp_of, write_laid
from holdfast.farside.system.layout import JOURNAL, Home, object_path
from holdfast.farside.system.nofollow import Entry, open_below, readlink_below, stat_below
from holdfast.farside.system.own_files import files_above, own_files, since_of
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import WORK, WorkingTree, tree_of

GONE, NOTHING = "not-found", "nothing"
"""Of refusals: the earlier run is not here, or has no such files."""
_NAMED = 5

Beat = Callable[[], None]
Earlier = Dict[str, Any]
"""The plan's `earlier`."""


class _Source(NamedTuple):
    """A file or link to lay: `name` as in a working tree, `link` what a link says. `reader` is a descriptor that the
    taker closes."""

    name: str
    link: Optional[str]
    reader: int = -1
    mode: int = 0o644
    times: Optional[Tuple[int, int]] = None


class Laid(NamedTuple):
    """`last`: when the disk says that the last of them was changed, in ns; 0 without files."""

    last: int
    notes: List[str]


def what_it_left(home: Home, earlier: Earlier, beat: Beat = lambda: None) -> List[Entry]:
    """Files and links below `path` that the run `earlier` wrote, and those that it went on from itself, by their names
    in its working tree. Raises Refused where it is not here, has not ended, or left nothing there."""
    folder, path = home.run(earlier["project"], earlier["run"]), str(earlier.get("path") or "")
    if not os.path.isdir(folder):
        raise Refused(GONE, "The run `%s` is not on this machine any more." % earlier["run"])
    adjudicate(folder)
    if JournalWriter(os.path.join(folder, JOURNAL)).ended() is None:  # its keepers may still be about to go
        raise Refused(
            "living",
            "The run `%s` has not ended: its files may be half written." % earlier["run"],
            "Wait for it: holdfast logs -f -r %s" % pasted(earlier["run"]),
        )
    found = [each for each in _entries(tree_of(folder), beat) if _is_below(each[0], path)]
    if not found:
        wrote = "wrote nothing at `%s`" % path if path else "wrote no files"
        raise Refused(
            NOTHING,
            "The run `%s` %s." % (earlier["run"], wrote),
            "What it wrote: holdfast history info -r %s" % pasted(earlier["run"]),
        )
    return found


def lay(home: Home, earlier: Earlier, folder: str, beat: Beat) -> Laid:
    """Into the working tree of the run in `folder`, over the snapshot's files. Raises Refused, or OSError."""
    laying = _Laying(tree_of(folder), Copier(beat))
    try:
        for source in _sources(home, earlier, laying, beat):
            laying.put(source)
    except FileNotFoundError as error:
        raise Refused(
            "storage", "`%s` of the run `%s` went while it was copied." % (error.filename, earlier["run"])
        ) from error
    write_laid(folder, laying.stamps)
    return Laid(max((stamp[1] for stamp in laying.stamps.values()), default=0), laying.notes(earlier["run"]))


def _entries(tree: WorkingTree, beat: Beat) -> List[Entry]:
    problems = []  # type: List[str]
    top = "%s/%s" % (WORK, OUTPUTS)
    found = {
        "%s/%s" % (top, path): status for path, status in walk(os.path.join(tree.project, OUTPUTS), problems, beat)
    }
    since = since_of(tree.folder)
    if since is not None:
        found.update(
            ("%s/%s" % (WORK, path), status) for path, status in own_files(tree.project, since, problems, beat)
        )
        found.update((tree.above(path), status) for path, status in files_above(tree, since, problems, beat))
    for name in read_laid(tree.folder):
        try:
            found.setdefault(name, stat_below(tree.folder, tree.path_of(name)))
        except (OSError, Refused):
            continue  # the run removed it
    kinds = (stat.S_IFREG, stat.S_IFLNK)
    return sorted((each for each in found.items() if stat.S_IFMT(each[1].st_mode) in kinds), key=lambda each: each[0])


def _is_below(name: str, path: str) -> bool:
    """`path` is one of the project; empty: all."""
    top = "%s/%s" % (WORK, path)
    return not path or name == top or name.startswith(top + "/")


def _sources(home: Home, earlier: Earlier, laying: "_Laying", beat: Beat) -> Iterator[_Source]:
    if earlier.get("sent"):
        return _sent(home, earlier["sent"])
    if earlier.get("folders"):
        return _of_folders(earlier, beat)
    there = tree_of(home.run(earlier["project"], earlier["run"]))
    laying.renames(there)
    return _of_run(there, what_it_left(home, earlier, beat))


def _of_run(tree: WorkingTree, entries: List[Entry]) -> Iterator[_Source]:
    for name, status in entries:
        yield _source(tree.folder, tree.path_of(name), name, status)


def _of_folders(earlier: Earlier, beat: Beat) -> Iterator[_Source]:
    """What is at home of it, where home is this machine."""
    path = str(earlier.get("path") or "")
    for top, place in earlier["folders"]:
        for inner, status in walk(top, [], beat) if os.path.isdir(top) else []:
            if _is_below("%s/%s" % (place, inner), path):
                yield _source(top, inner, "%s/%s" % (place, inner), status)


def _source(folder: str, path: str, name: str, status: os.stat_result) -> _Source:
    if stat.S_ISLNK(status.st_mode):
        return _Source(name, readlink_below(folder, path))
    times = (status.st_atime_ns, status.st_mtime_ns)
    return _Source(name, None, open_below(folder, path), stat.S_IMODE(status.st_mode) & 0o777, times)


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
    def __init__(self, tree: WorkingTree, copier: Copier) -> None:
        self._tree, self._copier = tree, copier
        self._there: Optional[WorkingTree] = None
        self._folders: Set[str] = set()
        self._replaced: List[str] = []
        self._left_out: List[str] = []
        self.stamps: Dict[str, Stamp] = {}

    def renames(self, there: WorkingTree) -> None:
        """Absolute links into the earlier run's working tree lead into this one's."""
        self._there = there

    def put(self, source: _Source) -> None:
        try:
            path = self._tree.path_of(source.name)
            if source.link is None:
                self._file(source, path)
            else:
                self._link(source.name, path, source.link)
        finally:
            if source.reader >= 0:
                os.close(source.reader)

    def notes(self, run: str) -> List[str]:
        found = []
        if self._replaced:
            found.append("Kept as %s left it, not as in the project: %s." % (run, _some(self._replaced)))
        if self._left_out:
            found.append("Left out, as it leads out of the folder of %s: %s." % (run, _some(self._left_out)))
        return found

    def _file(self, source: _Source, path: str) -> None:
        self._make_way(path, source.reader)
        target = self._place(path)
        try:
            writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._copier.copy(source.reader, writer)
                os.fchmod(writer, source.mode)
                if source.times is not None:
                    os.utime(writer, ns=source.times)  # a script may look for the newest
                self.stamps[source.name] = stamp_of(os.fstat(writer))
            finally:
                os.close(writer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, target) from None

    def _link(self, name: str, path: str, says: str) -> None:
        says = self._renamed(says)
        away = os.path.normpath(os.path.join(os.path.dirname(path), says))
        if not os.path.isabs(says) and not away.startswith(WORK + "/"):
            self._left_out.append(self._shown(path))
            return
        self._make_way(path, None)
        os.symlink(says, self._place(path))
        self.stamps[name] = stamp_of(os.lstat(self._place(path)))

    def _renamed(self, says: str) -> str:
        if self._there is None:
            return says
        pairs = ((self._there.project, self._tree.project), (self._there.work, self._tree.work))
        for before, now in pairs:
            if (says + "/").startswith(before + "/"):
                return now + says[len(before) :]
        return says

    def _make_way(self, path: str, reader: Optional[int]) -> None:
        """What the snapshot has in its place, or in that of a folder on the way, goes: no file is written through a
        link."""
        parts = path.split("/")
        for count in range(1, len(parts)):
            folder = "/".join(parts[:count])
            if folder in self._folders:
                continue
            place = self._place(folder)
            if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
                os.unlink(place)
                self._replaced.append(self._shown(folder))
            os.makedirs(place, exist_ok=True)
            self._folders.add(folder)
        target = self._place(path)
        if os.path.lexists(target):
            if reader is None or not have_same_content(reader, target):
                self._replaced.append(self._shown(path))
            remove_path(target)

    def _place(self, path: str) -> str:
        return os.path.join(self._tree.folder, *path.split("/"))

    def _shown(self, path: str) -> str:
        return os.path.relpath(self._place(path), self._tree.project)


def _some(paths: List[str]) -> str:
    named = ", ".join("`%s`" % path for path in paths[:_NAMED])
    more = " and %d more" % (len(paths) - _NAMED) if len(paths) > _NAMED else ""
    return named + more
