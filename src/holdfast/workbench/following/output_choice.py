"""Which files of a run come home by themselves, and which wait on its machine until a person asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from holdfast.snapshots.patterns import RuleSet, parse_rules
from holdfast.written_files import OUTPUTS, FileSize, OutputWishes


class Globs:
    """Lines as of a `.gitignore`, each of which takes in a file, or all of a folder. None is a comment or an
    exception."""

    def __init__(self, lines: Iterable[str]) -> None:
        content = b"\n".join(_line(os.fsencode(each)) for each in lines)
        self._rules = RuleSet(parse_rules(content, ""))

    def take_in(self, path: str) -> bool:
        parts = os.fsencode(path).split(b"/")
        return any(
            self._rules.decide(b"/".join(parts[:count]), parts[count - 1], count < len(parts)) is not None
            for count in range(1, len(parts) + 1)
        )


def staying(files: Iterable[FileSize], wishes: OutputWishes) -> list[FileSize]:
    """Of what a run wrote in its working folder, what does not come home by itself. All of `outputs/` does."""
    outside = [each for each in files if not each.path.startswith(f"{OUTPUTS}/")]
    globs = Globs(wishes.globs) if wishes.globs else None
    stays, room = list[FileSize](), wishes.limit
    for each in sorted(outside, key=lambda each: (each.size, each.path)):
        if room < each.size or (globs and not globs.take_in(each.path)):
            stays.append(each)
        else:
            room -= each.size
    return stays


def _line(text: bytes) -> bytes:
    return (b"\\" + text if text.startswith((b"!", b"#")) else text).replace(b"\n", b"?")
