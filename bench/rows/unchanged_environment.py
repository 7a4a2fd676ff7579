"""What a managed environment adds to a submit when it has not changed."""

from __future__ import annotations

import children
import profiles
from children import Place
from measuring import Contender, Figures, one
from package_places import built_environments, kept_place, pinned, write_own_python, write_spec
from results import Bar, Line, Row, Table, lines
from session import Session

NAME = "unchanged-environment"
TITLE = "An unchanged environment: what it adds to a submit"
TOOLS: tuple[str, ...] = ("holdfast",)

_COMMAND = ["holdfast", "submit", "-c", "local", "s.py"]
_MANAGED, _OWN = "environment that Holdfast built", "the same Python as the user's own"
_HOW = """\
A script that prints one word, submitted to this machine. The environment has numpy, pandas and scikit-learn and was
built before. As in every submit, Holdfast reads its file and looks for the environment each time. The other project
names the Python inside the same environment as `pythonLocation` with `userManagedEnvironment: true`, so that the
same program starts the script. It has no file that asks for packages. Added is the difference of the medians."""


def measure(session: Session) -> Row:
    managed = _managed(session)
    own = kept_place(session, "user-managed")
    write_own_python(own, built_environments(managed)[0] / "bin" / "python")
    _write_script(own)
    figures = session.compare(
        [
            Contender(_MANAGED, lambda: children.seconds(managed, _COMMAND, "hi")),
            Contender(_OWN, lambda: children.seconds(own, _COMMAND, "hi")),
        ],
        usual=30,
        warm_up=3,
    )
    first, *others = lines({_MANAGED: None, _OWN: None}, figures)
    added = Line("added to a submit", _difference(figures), Bar(50))
    return Row(
        NAME,
        TITLE,
        _HOW,
        (Table("Added", "ms", 1000, added), Table("The whole submit", "ms", 1000, first, tuple(others))),
    )


def profile(session: Session) -> str:
    place = _managed(session)
    return "\n\n".join(
        [
            profiles.run_timeline(place, _COMMAND[1:]),
            profiles.import_times(place, _COMMAND[1:]),
            profiles.cpu_profile(place, _COMMAND[1:]),
        ]
    )


def _managed(session: Session) -> Place:
    place = kept_place(session, "managed")
    write_spec(place, pinned("numpy", "pandas", "scikit-learn"))
    _write_script(place)
    session.say("building the environment")
    children.run(place, _COMMAND, "hi")
    return place


def _write_script(place: Place) -> None:
    (place.project / "s.py").write_text('print("hi")\n')


def _difference(figures: dict[str, Figures]) -> Figures:
    for each in figures.values():
        if not each.values:
            return each
    return one(figures[_MANAGED].median - figures[_OWN].median)
