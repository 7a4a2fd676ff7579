"""What one reader has shown of a run's copies so far, and what is new."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.history import journal_fold as journals
from holdfast.workbench.reach import events


class View:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: dict[str, tuple[int, int]] = {}

    def news(self) -> Iterator[events.Event]:
        """What the copies have that was not shown. The journal is read first: its end implies the whole output."""
        lines = self._take("journal.jsonl", whole_lines=True)
        parsed = journals.parse_journal(lines).events
        phases = [each for each in parsed if isinstance(each, _PHASES)]
        for event in parsed:
            if event not in phases[:-1]:  # those are over
                yield events.Recorded(self._folder.name, event)
        while output := self._take("driver_log"):
            yield events.OutputArrived(self._folder.name, output)

    def _take(self, name: str, whole_lines: bool = False) -> bytes:
        """The next bytes of a copy; from its beginning if it was set aside and begun again."""
        try:
            with (self._folder / name).open("rb") as source:
                identity = os.fstat(source.fileno()).st_ino
                seen, offset = self._shown.get(name, (identity, 0))
                source.seek(offset if seen == identity else 0)
                begin = source.tell()
                data = source.read() if whole_lines else source.read(_PIECE)
        except FileNotFoundError:
            return b""
        if whole_lines:
            data = data[: data.rfind(b"\n") + 1]
        self._shown[name] = (identity, begin + len(data))
        return data


_PIECE = 1 << 20
_PHASES = (journals.PhaseBegan, journals.Queued, journals.ScriptStarted)
