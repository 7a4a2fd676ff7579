"""Git's ignore patterns, byte for byte: a line becomes a regular expression, an ignore file a `RuleSet`.

Written here, and not taken from pathspec, because the result has to be the one that git gives (a test
compares the two on random trees): classes such as `[[:alpha:]]`, `dir/**` that spares `dir` itself, `\\` at a
line's end, names that are not UTF-8. The rules: https://git-scm.com/docs/gitignore and git's wildmatch.c.
"""

from __future__ import annotations

import itertools
import os
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence

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

    Plain names (most lines of most files) are looked up; the others are alternations, the last line first,
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
        self._alternations = [_alternation(globs[at : at + _TOGETHER]) for at in range(0, len(globs), _TOGETHER)]

    def last(self, subject: bytes) -> int:
        index = self._literals.get(subject, -1)
        for matches, indices in self._alternations:
            match = matches(subject)
            if match is not None and match.lastindex is not None:
                return max(index, indices[match.lastindex])
        return index


_TOGETHER = 500
"""Patterns in one expression: to enter its thousandth group costs a thousand steps."""


def _alternation(globs: Sequence[tuple[int, bytes]]) -> tuple[Callable[[bytes], re.Match[bytes] | None], list[int]]:
    """What matches a subject, and the index of a pattern by the number of its group, which closes last. Groups inside
    of it have none."""
    indices = [-1]
    for index, regex in globs:
        indices += [index] + [-1] * regex.count(_NAMED)
    source = b"|".join(b"(" + _named_apart(regex, index) + b")" for index, regex in globs)
    return re.compile(source, re.DOTALL).fullmatch, indices


_NAMED, _AGAIN = b"(?P<", b"(?P="
_SPECIAL = re.compile(rb"[*?\[\\]")


def _named_apart(regex: bytes, index: int) -> bytes:
    """Names of groups are unique in an expression. What looks like one in a glob is written with backslashes here."""
    return regex.replace(_NAMED, b"%sg%d" % (_NAMED, index)).replace(_AGAIN, b"%sg%d" % (_AGAIN, index))


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


_STAR, _CROSSING, _REST, _SLASH = b"*", b"**/", b"**", b"/"
"""What a glob has beside expressions of one byte, none of which is written like these: a star inside a part of the
path, `**/` that crosses folders, and `**` at the end."""


def _translate(glob: bytes, anchored: bool) -> bytes | None:
    """`glob` as a regular expression for a whole path (anchored) or a name; None: it can match nothing.

    Only the last star of a part (of a name, the last two), and the last that crosses folders, take more than one place
    in turn. Those before keep the first that fits, which leaves the most to the rest, so the time does not multiply.
    """
    tokens = _tokens(glob, anchored)
    if tokens is None:
        return None
    numbers = itertools.count()
    if not anchored:
        return _part(tokens, b".", numbers, tried=2)
    first, *others = _split(tokens, _CROSSING)
    out = [_parts(first, numbers)]
    out += [_once(b"(?:.*?/)??" + _parts(block, numbers), numbers) for block in others[:-1] if block]
    out += [b"(?:.*/)?" + _parts(block, numbers) for block in others[-1:]]
    return b"".join(out)


def _parts(tokens: list[bytes], numbers: Iterator[int]) -> bytes:
    """Parts of a path, which no star crosses, so that each has one place to end."""
    rest = b".*" if tokens[-1:] == [_REST] else b""
    inside = tokens[:-1] if rest else tokens
    return _SLASH.join(_part(part, b"[^/]", numbers) for part in _split(inside, _SLASH)) + rest


def _part(tokens: list[bytes], one: bytes, numbers: Iterator[int], tried: int = 1) -> bytes:
    """`tried` stars at the end take every place in turn. For names, which nothing follows, two are quicker than one."""
    first, *others = (b"".join(each) for each in _split(tokens, _STAR))
    kept = max(len(others) - tried, 0)
    out = [_once(one + b"*?" + each, numbers) for each in others[:kept]]
    return b"".join([first, *out, *(one + b"*" + each for each in others[kept:])])


def _once(expression: bytes, numbers: Iterator[int]) -> bytes:
    """An atomic group, which Python has from 3.11 only: nothing goes back into a lookahead."""
    name = b"_%d" % next(numbers)
    return b"(?=(?P<" + name + b">" + expression + b"))(?P=" + name + b")"


def _split(tokens: list[bytes], separator: bytes) -> list[list[bytes]]:
    found: list[list[bytes]] = [[]]
    for each in tokens:
        if each == separator:
            found.append([])
        else:
            found[-1].append(each)
    return found


def _tokens(glob: bytes, anchored: bool) -> list[bytes] | None:
    out: list[bytes] = []
    special = _SPECIAL.search(glob)
    position = 0
    while position < len(glob):
        character = glob[position : position + 1]
        position += 1
        if character == b"*":
            is_first = special is not None and special.start() == position - 1
            end = position
            while glob[end : end + 1] == b"*":
                end += 1
            token, position = _stars(glob, (position - 1, end), anchored, is_first)
            out.append(token)
        elif character == b"?":
            out.append(b"[^/]" if anchored else b".")
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
    return out


def _stars(glob: bytes, run: tuple[int, int], anchored: bool, is_first: bool) -> tuple[bytes, int]:
    """A run of asterisks: two or more that are a whole part of an anchored pattern cross folders.

    Git compares what stands before the first special character by itself and begins the pattern behind it, so
    there `a**/b` crosses folders too.
    """
    start, end = run
    crossing = anchored and end - start > 1 and (is_first or glob[start - 1 : start] in (b"", b"/"))
    if crossing and end == len(glob):
        return _REST, end
    if crossing and glob[end : end + 1] == b"/":
        return _CROSSING, end + 1
    return _STAR, end


def _bracket(glob: bytes, position: int) -> tuple[frozenset[int], int] | None:
    """The bytes that a `[…]` accepts and where it ends; None when it never closes or has an unknown class."""
    negated = glob[position : position + 1] in (b"!", b"^")
    if negated:
        position += 1
    accepted: set[int] = set()
    previous: int | None = None
    first, end = True, position
    while first or glob[position : position + 1] != b"]":
        first = False
        character = glob[position : position + 1]
        if not character:
            return None
        if glob[position : position + 2] == b"[:":
            end = max(end, position + 2)
            end = end if glob[end : end + 1] == b"]" else glob.find(b"]", end)
            if end < 0:
                return None
            if glob[max(end - 1, position + 2) : end] == b":":
                members = _CLASSES.get(glob[position + 2 : end - 1])
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
    first = [each for each in sorted(accepted) if each - 1 not in accepted]
    last = [each for each in sorted(accepted) if each + 1 not in accepted]
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % each for each in zip(first, last, strict=True)) + b"]"


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
