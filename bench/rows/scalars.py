"""How many scalars a script can log in a second."""

from __future__ import annotations

import children
import profiles
from measuring import Contender
from results import Bar, Row, Table, lines
from session import Session

NAME = "scalars"
TITLE = "Scalars logged per second"
TOOLS: tuple[str, ...] = ("holdfast", "trackio")

_OURS, _APPEND = "`holdfast.log`", "`os.write(fd, json.dumps(record))`"
_STORED, _CALLS = "trackio, until stored", "trackio, calls alone"
_HOW = """\
{count:,} calls with a name, a float and a step, in a separate process. `holdfast.log` has written each value when
it returns. trackio (offline, metrics of the machine off) keeps values in memory and stores them in batches: "until
stored" includes `finish()`, "calls alone" does not. The append makes the same record, with its time, and writes it
with one call."""


def measure(session: Session) -> Row:
    count = session.amount(100_000)
    ours, append = session.place("scalars"), session.place("scalars-append")
    trackio = session.place("scalars-trackio", "trackio")
    figures = session.compare(
        [
            Contender(_OURS, lambda: children.figure(ours, "log_holdfast.py", str(count))),
            Contender(_STORED, lambda: children.figure(trackio, "log_trackio.py", str(count), "stored")),
            Contender(_CALLS, lambda: children.figure(trackio, "log_trackio.py", str(count), "calls")),
            Contender(_APPEND, lambda: children.figure(append, "log_append.py", str(count))),
        ],
        usual=7,
    )
    thrice, most = Bar(3, at_most=False), Bar(0.7, at_most=False)
    bars = {_OURS: None, _STORED: thrice, _CALLS: thrice, _APPEND: most}
    first, *others = lines(bars, figures)
    how = _HOW.format(count=count)
    return Row(NAME, TITLE, how, (Table("", "thousand/s", 0.001, first, tuple(others)),))


def profile(session: Session) -> str:
    return profiles.program_profile(session.place("scalars-profile"), "log_holdfast.py", "20000")
