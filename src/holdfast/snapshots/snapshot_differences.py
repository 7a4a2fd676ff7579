"""What differs between two snapshots: paths, and the text of files as a unified diff."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.frozen import dataclass
from holdfast.project.quantities import format_size
from holdfast.snapshots.manifest import ManifestEntry, decode
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.warnings import shown

_TEXT_LIMIT = 200_000
"""Files beyond this are named and not compared line by line: it takes seconds, and is too long to read."""


@dataclass(frozen=True)
class SnapshotDifference:
    """Paths as in the manifests, sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def compare_snapshots(store: ObjectStore, a: str, b: str) -> SnapshotDifference:
    if a == b:
        return SnapshotDifference((), (), ())
    return _difference(_entries(store, a), _entries(store, b))


def unified_diff(store: ObjectStore, a: str, b: str, max_bytes: int = _TEXT_LIMIT) -> str:
    """From `a` to `b`. Binary files and files over `max_bytes` are named only; the text is safe to print."""
    if a == b:
        return ""
    before, after = _entries(store, a), _entries(store, b)
    difference = _difference(before, after)
    lines: list[str] = []
    for path in sorted({*difference.added, *difference.removed, *difference.changed}):
        lines += _file_diff(store, before.get(path), after.get(path), max_bytes)
    return "".join(line + "\n" for line in lines)


def _entries(store: ObjectStore, digest: str) -> dict[str, ManifestEntry]:
    return {entry.path: entry for entry in decode(store.read(digest))}


def _difference(before: dict[str, ManifestEntry], after: dict[str, ManifestEntry]) -> SnapshotDifference:
    return SnapshotDifference(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(sorted(path for path in before.keys() & after.keys() if before[path] != after[path])),
    )


def _file_diff(
    store: ObjectStore, old: ManifestEntry | None, new: ManifestEntry | None, max_bytes: int
) -> Iterator[str]:
    entry = new or old
    if entry is None:
        return
    name = shown(entry.path).strip("`")
    if old and new and old.kind != new.kind:
        yield f"{name}: {_KINDS[old.kind]} became {_KINDS[new.kind]}"
        if old.detail == new.detail:
            return
    largest = max(each.size for each in (old, new) if each)
    if largest > max_bytes:
        yield f"{name}: differs, and is too large to show ({format_size(largest)})"
        return
    old_content, new_content = _content(store, old), _content(store, new)
    if b"\0" in old_content or b"\0" in new_content:
        yield f"{name}: binary files differ"
        return
    yield from _text_diff(
        f"a/{name}" if old else "/dev/null", f"b/{name}" if new else "/dev/null", old_content, new_content
    )


_KINDS = {"f": "a file", "x": "an executable file", "l": "a link"}


def _content(store: ObjectStore, entry: ManifestEntry | None) -> bytes:
    if entry is None:
        return b""
    return entry.detail.encode("utf-8", "surrogateescape") if entry.kind == "l" else store.read(entry.detail)


def _text_diff(old_name: str, new_name: str, old: bytes, new: bytes) -> Iterator[str]:
    import difflib  # costs 6 ms, and most commands compare nothing

    old_lines, new_lines = _lines(old), _lines(new)
    if not old_lines or not new_lines:
        yield from (f"--- {old_name}", f"+++ {new_name}")  # difflib prints no header for an empty file
    for line in difflib.unified_diff(old_lines, new_lines, old_name, new_name, n=3):
        if not (old_lines and new_lines) and line.startswith(("--- ", "+++ ")):
            continue
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "backslashreplace")
    return text.splitlines(keepends=True) if "\r" not in text else [each + "\n" for each in text.split("\n")]
