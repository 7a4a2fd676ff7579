"""A snapshot's manifest: which files, which content. Canonical JSON; its sha256 is the snapshot's name."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from holdfast.errors import StorageError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.snapshots.warnings import shown

FORMAT = 1

Kind = Literal["f", "x", "l"]


class ManifestEntry(NamedTuple):
    """A file, as the JSON has it. `kind`: `f` file or `x` executable file, `detail` is the sha256; `l` link, `detail`
    is its target."""

    path: str
    kind: Kind
    detail: str
    size: int


def encode_rows(rows: Iterable[tuple[str, str, str, int]]) -> bytes:
    """The one way to write it: sorted by path, no spaces, ASCII, so that equal files give equal bytes. A row is an
    entry, or a plain tuple like it: no object for each of ten thousand files."""
    document = {"format": FORMAT, "files": sorted(rows)}
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> tuple[ManifestEntry, ...]:
    """Read a manifest and trust nothing in it: no path in the result can lead out of a folder, or into what git or
    Holdfast keep in one."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad("it is not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("files"), list):
        raise _bad("it is not a manifest")
    if document.get("format") != FORMAT:
        raise _bad(
            f"its format is {str(document.get('format'))[:20]!a}, and this version reads {FORMAT}",
            "It was written by another version: pip install --upgrade holdfast",
        )
    rows: list[Any] = document["files"]
    _check_shapes(rows)
    _check_paths([row[0] for row in rows])
    _check_details(rows)
    return tuple([ManifestEntry(*row) for row in rows])


_PART_THAT_LEADS_AWAY = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")


def _check_shapes(rows: list[Any]) -> None:
    shapes = set(map(type, rows)) <= {list} and set(map(len, rows)) <= {4}
    if shapes and rows:
        paths, kinds, details, sizes = zip(*rows, strict=True)
        texts = {*map(type, paths), *map(type, kinds), *map(type, details)}
        shapes = texts == {str} and set(map(type, sizes)) == {int} and min(sizes) >= 0 and max(sizes) < 1 << 63
    if not shapes:
        raise _bad("one of its entries does not describe a file")


def _check_paths(paths: list[str]) -> None:
    # All paths at once: ten thousand of them are checked in a few milliseconds, by searches that run in C.
    joined = "\0".join(paths)
    if paths and joined.count("\0") != len(paths) - 1:
        raise _bad("a path contains a NUL byte")
    _check_bytes(joined)
    guarded = "/" + joined.replace("\0", "/\0/") + "/"
    if paths and ("//" in guarded or "/./" in guarded or "/../" in guarded):
        culprit = next(path for path in paths if _PART_THAT_LEADS_AWAY.search(path))
        raise _bad(f"the path {shown(culprit[:200])} leads out of the project or has an empty part")
    reserved = reserved_path(paths)
    if reserved is not None:
        raise _bad(
            f"{shown(reserved[:200])} is a name that git or Holdfast keeps for itself, and no snapshot has",
            "Do not restore it. Where the run comes from: holdfast history info -r RUN",
        )
    if not all(map(operator.lt, paths, paths[1:])):
        raise _bad("its paths are not sorted, or one is there twice")
    folders = {path.rpartition("/")[0] for path in paths}
    for folder in list(folders):
        while folder := folder.rpartition("/")[0]:
            if folder in folders:
                break
            folders.add(folder)
    both = folders.intersection(paths)
    if both:
        raise _bad(f"{shown(min(both)[:200])} is a file and a folder at once")


def _check_details(rows: list[Any]) -> None:
    digests = [row[2] for row in rows if row[1] in ("f", "x")]
    rest = "".join(digests).encode("ascii", "replace").translate(None, b"0123456789abcdef")
    if rest or set(map(len, digests)) - {64}:
        raise _bad("a file's digest is not a sha256")
    if len(digests) == len(rows):
        return
    for path, kind, target, _size in rows:
        if kind == "l":
            if not target or "\0" in target:
                raise _bad(f"the link {shown(path[:200])} has no usable target")
            _check_bytes(target)
        elif kind not in ("f", "x"):
            raise _bad(f"{shown(path[:200])} is of an unknown kind {kind[:20]!a}")


def _check_bytes(text: str) -> None:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _bad("a name in it cannot be a file name") from None


def _bad(reason: str, hint: str = "") -> StorageError:
    return StorageError(
        f"A snapshot's manifest cannot be used: {reason}.",
        hint or "The store was damaged or changed by hand; submit again to take a new snapshot.",
    )
