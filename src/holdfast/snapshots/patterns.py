"""Git's ignore patterns, byte for byte: a line becomes a regular expression, an ignore file a `RuleSet`.

Written here, and not taken from pathspec, because the result has to be the one that git gives (a test
compares the two on random trees): classes such as `[[:alpha:]]`, `dir/**` that spares `dir` itself, `\\` at a
line's end, names that are not UTF-8. The rules: https://git-scm.com/docs/gitignore and git's wildmatch.c.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterable, Sequence

from holdfast.frozen import dataclass


@dataclass(frozen=True)
class Pattern:
    """One line. `glob` is without `!` and without the `/` at the end; `regex` None: it can match nothing."""

    source: str
    line: int | None
    text: bytes
    glob: bytes
    negated: bool
    directory_only: bool
    anchored: bool
    regex: bytes | None


class RuleSet:
    """Patterns of one folder, in order: the last that matches decides."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._file_names = _Table(self.patterns, anchored=False, directories=False)
        self._file_paths = _Table(self.patterns, anchored=True, directories=False)
        self._folder_names = _Table(self.patterns, anchored=False, directories=True)
        self._folder_paths = _Table(self.patterns, anchored=True, directories=True)

    def decide(self, path: bytes, name: bytes, is_directory: bool) -> Pattern | None:
        """The pattern that decides about `path` (relative to the rules' folder; `name` is its last part)."""
        if is_directory:
            index = max(self._folder_names.last(name), self._folder_paths.last(path))
        else:
            index = max(self._file_names.last(name), self._file_paths.last(path))
        return None if index < 0 else self.patterns[index]


def parse_rules(content: bytes, source: str, numbered: bool = True) -> list[Pattern]:
    """The patterns of an ignore file, as git reads it: comments, blank lines, `\\r\\n`, a byte order mark."""
    found = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if raw.startswith(b"#"):
            continue
        line = _without_trailing_spaces(raw.removesuffix(b"\r"))
        pattern = _parse_line(line, source, number if numbered else None)
        if pattern:
            found.append(pattern)
    return found


def literal(path: bytes) -> bytes:
    """A pattern piece that matches exactly these bytes."""
    return re.sub(rb"([\\*?\[ !#])", rb"\\\1", path)


def typed_line(path: bytes) -> str:
    """A line for .amlignore that matches this path alone and can be shown and pasted: `?` stands for a byte that cannot
    be typed."""
    escaped = os.fsdecode(literal(path))
    return "".join(each if each.isprintable() else "?" * len(os.fsencode(each)) for each in escaped)


def with_slashes(path: bytes, separator: str = os.sep) -> bytes:
    """A path of this system as patterns and manifests have it."""
    return path if separator == "/" else path.replace(separator.encode(), b"/")


class _Table:
    """The patterns that look at one kind of subject, ready to be asked ten thousand times.

    Plain names (most lines of most files) are looked up; the others are one alternation, the last line first,
    so that the first alternative that matches is the last line that does.
    """

    def __init__(self, patterns: Iterable[Pattern], anchored: bool, directories: bool) -> None:
        self._literals: dict[bytes, int] = {}
        globs: list[tuple[int, bytes]] = []
        for index, pattern in enumerate(patterns):
            if pattern.regex is None or pattern.anchored != anchored:
                continue
            if pattern.directory_only and not directories:
                continue
            if _SPECIAL.search(pattern.glob):
                globs.append((index, pattern.regex))
            else:
                self._literals[pattern.glob.removeprefix(b"/")] = index
        globs.reverse()
        self._indices = [index for index, _ in globs]
        source = b"|".join(b"(" + regex + b")" for _, regex in globs)
        self._match = re.compile(source, re.DOTALL).fullmatch if globs else None

    def last(self, subject: bytes) -> int:
        index = self._literals.get(subject, -1)
        if self._match is None:
            return index
        match = self._match(subject)
        if match is None or match.lastindex is None:
            return index
        return max(index, self._indices[match.lastindex - 1])


_SPECIAL = re.compile(rb"[*?\[\\]")


def _parse_line(line: bytes, source: str, number: int | None) -> Pattern | None:
    negated = line.startswith(b"!")
    body = line[1:] if negated else line
    glob = body.removesuffix(b"/")
    if not glob:
        return None
    anchored = b"/" in glob
    return Pattern(
        source=source,
        line=number,
        text=line,
        glob=glob,
        negated=negated,
        directory_only=body.endswith(b"/"),
        anchored=anchored,
        regex=_translate(glob.removeprefix(b"/"), anchored),
    )


def _without_trailing_spaces(line: bytes) -> bytes:
    kept, position = 0, 0
    while position < len(line):
        if line[position : position + 1] == b"\\":
            if position + 1 == len(line):
                return line  # as git: a lone backslash at the end keeps the line as it is
            position += 1
            kept = position + 1
        elif line[position : position + 1] != b" ":
            kept = position + 1
        position += 1
    return line[:kept]


def _translate(glob: bytes, anchored: bool) -> bytes | None:
    """`glob` as a regular expression for a whole path (anchored) or a name; None: it can match nothing."""
    one, many = (b"[^/]", b"[^/]*") if anchored else (b".", b".*")
    out: list[bytes] = []
    position = 0
    while position < len(glob):
        character = glob[position : position + 1]
        position += 1
        if character == b"*":
            end = position
            while glob[end : end + 1] == b"*":
                end += 1
            piece, position = _stars(glob, position - 1, end, many)
            out.append(piece)
        elif character == b"?":
            out.append(one)
        elif character == b"[":
            parsed = _bracket(glob, position)
            if parsed is None:
                return None
            accepted, position = parsed
            out.append(_character_class(accepted - {0x2F} if anchored else accepted))
        elif character == b"\\":
            if position == len(glob):
                return None
            out.append(re.escape(glob[position : position + 1]))
            position += 1
        else:
            out.append(re.escape(character))
    return b"".join(out)


def _stars(glob: bytes, start: int, end: int, many: bytes) -> tuple[bytes, int]:
    """A run of asterisks: two or more that are a whole part of an anchored pattern cross folders.

    Git compares what stands before the first special character by itself and begins the pattern behind it, so
    there `a**/b` crosses folders too.
    """
    whole = glob[start - 1 : start] in (b"", b"/") or not _SPECIAL.search(glob, 0, start)
    crossing = many == b"[^/]*" and end - start > 1 and whole
    if crossing and end == len(glob):
        return b".*", end
    if crossing and glob[end : end + 1] == b"/":
        return b"(?:.*/)?", end + 1
    return many, end


def _bracket(glob: bytes, position: int) -> tuple[frozenset[int], int] | None:
    """The bytes that a `[…]` accepts and where it ends; None when it never closes or has an unknown class."""
    negated = glob[position : position + 1] in (b"!", b"^")
    if negated:
        position += 1
    accepted: set[int] = set()
    previous: int | None = None
    first = True
    while first or glob[position : position + 1] != b"]":
        first = False
        character = glob[position : position + 1]
        if not character:
            return None
        if glob[position : position + 2] == b"[:" and (end := glob.find(b"]", position + 2)) >= 0:
            name = glob[position + 2 : end]
            if name.endswith(b":"):
                members = _CLASSES.get(name[:-1])
                if members is None:
                    return None
                accepted |= members
                previous, position = None, end + 1
                continue
        following = glob[position + 1 : position + 2]
        ranged = character == b"-" and previous is not None and following not in (b"", b"]")
        if ranged:
            position += 1
            character = following
        if character == b"\\":
            position += 1
            character = glob[position : position + 1]
            if not character:
                return None
        accepted |= set(range(previous or 0, character[0] + 1)) if ranged else {character[0]}
        previous = None if ranged else character[0]
        position += 1
    return frozenset(set(range(256)) - accepted if negated else accepted), position + 1


def _character_class(accepted: frozenset[int]) -> bytes:
    if not accepted:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % each for each in sorted(accepted)) + b"]"


def _members(characters: str) -> frozenset[int]:
    return frozenset(characters.encode("ascii"))


_CLASSES = {
    b"alnum": _members(string.ascii_letters + string.digits),
    b"alpha": _members(string.ascii_letters),
    b"blank": _members(" \t"),
    b"cntrl": frozenset({*range(32), 127}),
    b"digit": _members(string.digits),
    b"graph": frozenset(range(33, 127)),
    b"lower": _members(string.ascii_lowercase),
    b"print": frozenset(range(32, 127)),
    b"punct": _members(string.punctuation),
    b"space": _members(" \t\n\r"),  # without \v and \f, as in git
    b"upper": _members(string.ascii_uppercase),
    b"xdigit": _members(string.hexdigits),
}
