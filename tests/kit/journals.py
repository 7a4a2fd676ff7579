"""A journal that is short, whole in memory: its events, and the run that it tells of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.history.journal_fold import JournalEvent, JournalReader
from holdfast.history.records import Folding
from holdfast.model import Run, Submission


class Journal(NamedTuple):
    events: tuple[JournalEvent, ...]
    bad_lines: int


def parsed(data: bytes) -> Journal:
    reader = JournalReader()
    return Journal(tuple(reader.feed(data)), reader.bad_lines)


def folded(submission: Submission, data: bytes = b"", metrics: Mapping[str, Any] | None = None) -> Run:
    """The run as these bytes of a journal tell it."""
    folding, reader = Folding(submission), JournalReader()
    for event in reader.feed(data):
        folding.take(event)
    return folding.run(reader.bad_lines, metrics or {})
