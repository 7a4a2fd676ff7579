"""The start-up time of the command line."""

from __future__ import annotations

import children
import profiles
from measuring import Contender
from results import Bar, Row, Table, lines
from session import Session

NAME = "help"
TITLE = "The help text"
TOOLS: tuple[str, ...] = ("holdfast",)

_OURS, _CLICK, _NOTHING = "`holdfast --help`", '`python -c "import click"`', '`python -c ""`'
_HOW = """\
Whole processes of one environment. Holdfast parses its command line with the library click, so this shows what
Holdfast adds to it."""


def measure(session: Session) -> Row:
    place = session.place("help")
    figures = session.compare(
        [
            Contender(_OURS, lambda: children.seconds(place, ["holdfast", "--help"], "submit")),
            Contender(_CLICK, lambda: children.seconds(place, ["python", "-c", "import click"])),
            Contender(_NOTHING, lambda: children.seconds(place, ["python", "-c", ""])),
        ],
        usual=40,
        warm_up=2,
    )
    first, *others = lines({_OURS: None, _CLICK: Bar(2.5), _NOTHING: None}, figures)
    return Row(NAME, TITLE, _HOW, (Table("", "ms", 1000, first, tuple(others)),))


def profile(session: Session) -> str:
    place = session.place("help-profile")
    children.run(place, ["holdfast", "--help"])
    return profiles.import_times(place, ["--help"])
