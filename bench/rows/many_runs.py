"""Two hundred one-line runs at once."""

from __future__ import annotations

import json
import time

import children
import profiles
from children import PROGRAMS, Place
from measuring import Contender, FailedError
from results import Bar, Row, Table, lines
from session import Session

NAME = "many-runs"
TITLE = "200 one-line runs"
TOOLS: tuple[str, ...] = ("holdfast", "submitit")

_PROCESS, _COMMANDS, _SUBMITIT = (
    "`workbench.submit`, one process",
    "`holdfast submit -a`, a command each",
    "submitit local",
)
LONGEST_WAIT = 60.0
"""Seconds after the last submit in which a one-line run must have ended."""
_HOW = """\
{count} runs of a script that prints one word, until the last has ended, its output is fetched and its record says
`Completed`. submitit: one process calls `LocalExecutor.submit` {count} times, then asks each job for its result.
Holdfast in the same way: one process calls `workbench.submit` {count} times, then refreshes until all have ended.
And as commands: `holdfast submit -a` {count} times one after another, then `holdfast history list` until all have
ended. Neither tool limits the number of simultaneous runs on this machine, and no limit was set."""


def measure(session: Session) -> Row:
    count = session.amount(200)
    submitit = session.place("many-submitit", "submitit")
    figures = session.compare(
        [
            Contender(_PROCESS, lambda: _in_one_process(session, count)),
            Contender(_COMMANDS, lambda: _as_commands(session, count)),
            Contender(
                _SUBMITIT, lambda: children.seconds(submitit, ["python", PROGRAMS / "submitit_many.py", str(count)])
            ),
        ],
        usual=3,
        warm_up=0,
    )
    how = _HOW.format(count=count)
    tables = []
    for title, name in (("In one process", _PROCESS), ("As commands", _COMMANDS)):
        ours, other = lines({name: None, _SUBMITIT: Bar(0.5)}, figures)
        tables.append(Table(title, "s", 1, ours, (other,)))
    return Row(NAME, TITLE, how, tuple(tables))


def profile(session: Session) -> str:
    place = _fresh(session, "many-profile")
    return profiles.program_profile(place, "submit_many.py", "20")


def _fresh(session: Session, name: str) -> Place:
    """Each round has an empty home and a project without history; so the first run also installs the far side."""
    place = session.fresh_place(name)
    (place.project / "s.py").write_text('print("hi")\n')
    return place


def _in_one_process(session: Session, count: int) -> float:
    return children.seconds(_fresh(session, "many-process"), ["python", PROGRAMS / "submit_many.py", str(count)])


def _as_commands(session: Session, count: int) -> float:
    place = _fresh(session, "many-commands")
    begin = time.perf_counter()
    for _ in range(count):
        children.run(place, ["holdfast", "submit", "-a", "s.py"])
    submitted = time.perf_counter()
    while True:
        statuses = json.loads(children.run(place, ["holdfast", "history", "list", "--query", "[].status"]).out)
        now = time.perf_counter()
        if statuses.count("Completed") == count:
            return now - begin
        if {"Failed", "Canceled"} & set(statuses):
            raise FailedError("a run did not complete")
        if now - submitted > LONGEST_WAIT:
            left = count - statuses.count("Completed")
            raise FailedError(f"{left} of {count} runs had not ended {LONGEST_WAIT:.0f} s after the last submit")
