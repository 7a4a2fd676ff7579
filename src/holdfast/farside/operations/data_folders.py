"""The data that this machine keeps for runs: kept when it has come, listed, removed; and a look at data that lies here
anyway."""

import os
import shutil
import stat
import time
from typing import Any, Dict, Iterator, List, Set, Tuple

from holdfast.farside.operations.home_lock import Adding, Alone
from holdfast.farside.operations.known_runs import all_runs
from holdfast.farside.run.liveness import adjudicate, has_ended
from holdfast.farside.system import foreign
from holdfast.farside.system.digests import sha256
from holdfast.farside.system.files import find_object, read_json, read_record, remove_tree
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.kept_data import TREE, kept, last_use, read_about, write_about
from holdfast.farside.system.layout import Home, object_path, relative_parts
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

INCOMPLETE = "incomplete"
_MOST_NAMES = 20
_MOST_SEEN, _LONGEST_LOOK = 20000, 1.0
"""Files, and seconds, after which a look at a large folder ends."""

Message = Dict[str, Any]


def keep(home: Home, message: Message) -> Dict[str, Any]:
    """Make a data folder of the manifest `digest`, whose contents have arrived; `name` is what people call it. A repeat
    changes nothing but the names. Refused (`incomplete`) where something has not arrived."""
    digest, name = message["digest"], str(message["name"])
    with Adding(home):
        about = read_about(home, digest)
        if about is None:
            about = _made(home, digest)
        names = [str(each) for each in foreign.listing(about.get("names"))]
        if name not in names and len(names) < _MOST_NAMES:
            write_about(home.data_folder(digest), dict(about, names=names + [name]))
    return {"files": about["files"], "size": about["size"]}


def listed(home: Home) -> List[Dict[str, Any]]:
    """The one that was used last first. `users`: runs that have not ended."""
    users = _users(home)
    rows = []
    for digest in kept(home):
        about = read_about(home, digest) or {}
        rows.append(
            {
                "digest": digest,
                "names": [str(each) for each in foreign.listing(about.get("names"))],
                "files": int(foreign.number(about.get("files"))),
                "size": int(foreign.number(about.get("size"))),
                "used": last_use(home, digest),
                "users": users.get(digest, []),
            }
        )
    return sorted(rows, key=lambda row: (-row["used"], row["digest"]))


def remove(home: Home, message: Message) -> Dict[str, Any]:
    """Gone already is success. Refused (`living`) while a run that has not ended reads it."""
    digest = message["digest"]
    folder = home.data_folder(digest)
    with Alone(home):
        about = read_about(home, digest)
        users = _users(home).get(digest, [])
        if users:
            raise Refused(
                "living",
                "The run `%s` is using it." % users[0],
                "Wait for it, or: holdfast cancel -r %s" % pasted(users[0]),
            )
        remove_tree(folder)
    return {"removed": int(foreign.number((about or {}).get("size")))}


def look(home: Home, message: Message) -> Dict[str, Any]:
    """What lies at `path`: how many files and bytes, and a digest of their names, sizes and times of change, not of
    their contents. Of a large folder (`is_whole` false) what was seen first."""
    path = os.path.expanduser(str(message["path"]))
    try:
        status = os.stat(path)
    except OSError as error:
        raise Refused("not-found", "`%s`: %s" % (path, error.strerror), "Correct the path, or make the folder there.")
    if not os.path.isabs(path) or not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise Refused("not-found", "`%s` is neither a file nor a folder." % path, "Correct the path.")
    rows, is_whole = _seen(path, status)
    total = sha256("\n".join("%s\0%d\0%d" % row for row in sorted(rows)).encode("utf-8", "surrogateescape"))
    return {
        "path": path,
        "files": len(rows),
        "size": sum(row[1] for row in rows),
        "digest": total.hexdigest(),
        "is_whole": is_whole,
    }


def _made(home: Home, digest: str) -> Dict[str, Any]:
    document = read_json(object_path(home.objects(), digest))
    rows = foreign.listing((document or {}).get("files"))
    missing = [row for row in rows if row[1] != "l" and find_object([home.objects()], row[2]) is None]
    if document is None or missing:
        raise Refused(INCOMPLETE, "%d contents of the data are not here." % max(1, len(missing)))
    make_private(home.data())
    new = os.path.join(home.data(), ".new-%d-%s" % (os.getpid(), os.urandom(8).hex()))
    try:
        _lay(home, rows, os.path.join(new, TREE))
        size = sum(int(row[3]) for row in rows)
        about = {"format": 1, "names": [], "files": len(rows), "size": size, "made": time.time()}
        os.sync()  # a power cut must not leave empty files under the right name
        write_about(new, about)
        os.rename(new, home.data_folder(digest))
    except FileExistsError:
        remove_tree(new)
    except OSError:
        remove_tree(new)
        if read_about(home, digest) is None:  # another process was not quicker
            raise
    return read_about(home, digest) or about


def _lay(home: Home, rows: List[Any], tree: str) -> None:
    """As links to the contents that arrived: they take no room again. Nothing may write there."""
    folders: Set[str] = {tree}
    os.makedirs(tree)
    for path, kind, detail, _ in rows:
        place = os.path.join(tree, *relative_parts(path))
        parent = os.path.dirname(place)
        if parent not in folders:
            os.makedirs(parent, exist_ok=True)
            folders.add(parent)
        if kind == "l":
            os.symlink(detail, place)
            continue
        source = object_path(home.objects(), detail)
        try:
            os.link(source, place)
        except OSError:  # the disk has no links, or has too many of this one
            shutil.copyfile(source, place)
        os.chmod(place, 0o555 if kind == "x" else 0o444)
    for folder, _, _ in os.walk(tree):
        os.chmod(folder, 0o555)  # noqa: S103 - less than it had: nothing writes there any more


def _users(home: Home) -> Dict[str, List[str]]:
    """By digest, the runs that have not ended."""
    found: Dict[str, List[str]] = {}
    for project, run in all_runs(home):
        folder = home.run(project, run)
        plan = read_record(os.path.join(folder, "plan.json")) or {}
        digests = [foreign.mapping(each).get("digest") for each in foreign.listing(plan.get("data"))]
        if any(digests) and _lives(folder):
            for digest in digests:
                found.setdefault(str(digest), []).append(run)
    return found


def _lives(folder: str) -> bool:
    adjudicate(folder)
    return not has_ended(folder)


def _seen(path: str, status: os.stat_result) -> Tuple[List[Tuple[str, int, int]], bool]:
    if stat.S_ISREG(status.st_mode):
        return [(os.path.basename(path), status.st_size, status.st_mtime_ns)], True
    rows = []  # type: List[Tuple[str, int, int]]
    until = time.monotonic() + _LONGEST_LOOK
    for each in _files(path):
        if len(rows) >= _MOST_SEEN or time.monotonic() > until:
            return rows, False
        rows.append(each)
    return rows, True


def _files(path: str) -> Iterator[Tuple[str, int, int]]:
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            place = os.path.join(folder, name)
            try:
                status = os.lstat(place)
            except OSError:
                continue
            yield os.path.relpath(place, path), status.st_size, status.st_mtime_ns
