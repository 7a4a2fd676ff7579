"""Reading a run whose journal is long: of weeks in a queue, or filled by somebody who means harm."""

from __future__ import annotations

import functools

import children
import profiles
from children import Place, Worker
from measuring import Contender
from results import Line, Row, Table
from session import Session
from synthetic_runs import write_runs

NAME = "long-journal"
TITLE = "A long journal"
TOOLS: tuple[str, ...] = ("holdfast",)

_SIZES = ("2.4", "24")
_HOW = """\
A run with a journal of 2.4 MB, and one of 24 MB: notes, phases and processes that had to be ended, in turn. Ten times
the journal should take ten times as long. Measured is `read_run`, in one process."""


def measure(session: Session) -> Row:
    with Worker(_ours(session), "fold_journal.py") as worker:
        contenders = [Contender(f"{size} MB", functools.partial(worker.ask, size)) for size in _SIZES]
        found = session.compare(contenders, usual=5)
    short, long = (Line(f"{size} MB", found[f"{size} MB"], is_peer=False) for size in _SIZES)
    return Row(NAME, TITLE, _HOW, (Table("Reading the run", "ms", 1000, short, (long,)),))


def profile(session: Session) -> str:
    return profiles.cpu_profile(_ours(session), ["history", "last"])


def _ours(session: Session) -> Place:
    place = session.place("long-journal")
    write_runs(place.project, 1)
    children.run(place, ["holdfast", "project", "trust", "--yes"])
    return place
