"""One package added to an environment of thirty."""

from __future__ import annotations

import shutil

import children
import profiles
from children import Place
from measuring import Contender
from package_places import ADDED, built_environments, forget_environments, kept_place, pinned, remove, write_spec
from results import Bar, Row, Table, lines
from session import Session

NAME = "one-more-package"
TITLE = "One package added to an environment of 30"
TOOLS: tuple[str, ...] = ("holdfast",)

_COMMAND = ["holdfast", "submit", "-c", "local", "s.py"]
_OURS = "`holdfast submit s.py`"
_ANEW, _INTO = "`python -m venv`, then `pip install` of all", "`pip install` of the one, into what is there"
_HOW = """\
An environment of {count} packages exists, and `{added}` is added to its file. From the command to the end of a
script that finds it, without importing it, and prints one word. Holdfast never changes an environment that runs may
use: it resolves the changed file and builds a second environment, from the files that it has. This is compared with
pip doing the same: a new environment with all packages. In the last line, pip changes the existing environment
without checking that it matches the file. It installs one package instead of all, and has no bar. All packages are
in every tool's cache."""
_SCRIPT = f'import importlib.util\nassert importlib.util.find_spec("{ADDED.partition("==")[0]}")\nprint("hi")\n'


def measure(session: Session) -> Row:
    ours, anew, into = _ours(session, NAME), _by_hand(session, "anew"), _by_hand(session, "into")
    session.say("making the environments of 30")
    count = _prepare(ours)
    children.run(into, ["sh", "-c", "python -m venv env && env/bin/pip install -q -r thirty.txt"])
    shutil.move(into.project / "env", into.project / "built")
    figures = session.compare(
        [
            Contender(_OURS, lambda: _add(ours)),
            Contender(_ANEW, lambda: _make_anew(anew)),
            Contender(_INTO, lambda: _install_into(into)),
        ],
        usual=5,
    )
    first, *others = lines({_OURS: None, _ANEW: Bar(0.1), _INTO: None}, figures)
    return Row(NAME, TITLE, _HOW.format(count=count, added=ADDED), (Table("", "s", 1, first, tuple(others)),))


def profile(session: Session) -> str:
    place = _ours(session, f"{NAME}-profile")
    _prepare(place)
    _add(place)
    _prepare(place)
    write_spec(place, [*pinned(), ADDED])
    return profiles.run_timeline(place, _COMMAND[1:])


def _ours(session: Session, name: str) -> Place:
    place = kept_place(session, name)
    (place.project / "s.py").write_text(_SCRIPT)
    (place.project / "first.py").write_text('print("hi")\n')
    return place


def _prepare(place: Place) -> int:
    """Only the environment of 30 is there; how many packages it really has."""
    forget_environments(place)
    write_spec(place, pinned())
    children.run(place, [*_COMMAND[:-1], "first.py"], "hi")
    (environment,) = built_environments(place)
    return len(list(environment.glob("lib/python*/site-packages/*.dist-info")))


def _add(place: Place) -> float:
    _prepare(place)
    write_spec(place, [*pinned(), ADDED])
    return children.seconds(place, _COMMAND, "hi")


def _by_hand(session: Session, how: str) -> Place:
    place = kept_place(session, f"{NAME}-{how}")
    (place.project / "s.py").write_text(_SCRIPT)
    for name, wanted in (("thirty.txt", pinned()), ("all.txt", [*pinned(), ADDED])):
        (place.project / name).write_text("".join(f"{line}\n" for line in wanted))
    return place


def _make_anew(place: Place) -> float:
    remove(place.project / "env")
    steps = ["python -m venv env", "env/bin/pip install -q -r all.txt", "env/bin/python s.py"]
    return children.seconds(place, ["sh", "-c", " && ".join(steps)], "hi")


def _install_into(place: Place) -> float:
    """Into a copy at the place where the environment was made: its scripts name it."""
    remove(place.project / "env")
    shutil.copytree(place.project / "built", place.project / "env", symlinks=True)
    return children.seconds(
        place, ["sh", "-c", "env/bin/python -m pip install -q -r all.txt && env/bin/python s.py"], "hi"
    )
