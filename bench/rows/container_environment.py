"""A new environment for containers, of packages that the machine has had before, and one package added to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress

import children
import first_imports
import profiles
from children import Place
from container_places import attach, calls, engine, in_turn, settle, using
from image_builds import BASE, Builder, forget_image, make_bases, run_line
from measuring import Contender, FailedError
from package_places import forget_environments, kept_place, pinned, write_packages
from results import Bar, Row, Table, lines
from session import Session

from kit.docker.daemon import Daemon

NAME = "container-environment"
TITLE = "An environment for containers: numpy, pandas and scikit-learn, warm package cache"
TOOLS: tuple[str, ...] = ("holdfast",)

_COMMAND = ["holdfast", "submit", "-c", "here"]
_NAMES, _ADDED = ("numpy", "pandas", "scikit-learn"), "tqdm"
_OURS, _OURS_ADDED = "`holdfast submit s.py`", "`holdfast submit s.py`, one package more"
_BUILD, _BUILD_ADDED = "`docker build`, `docker run`", "`docker build`, `docker run`, one package more"
_KIT, _KIT_ADDED = "the same with BuildKit", "the same with BuildKit, one package more"
_LINE = "the same, with `RUN pip install` of the one below the others"
_HOW = f"""\
From the command to the end of a script that prints one word, in a container with packages that were never installed
before, at pinned versions that are in every tool's cache. All use the same image: Debian's Python with the pip that
comes with Python. Holdfast resolves, locks, builds in a container and mounts the result; its environments and locks
are removed before each round. By hand: `docker build` of a Dockerfile that copies `requirements.txt` and has `RUN
pip install -r requirements.txt`, then `docker run`. Docker's classic builder cannot mount pip's cache, so the cache
is in a layer of the base image; with BuildKit it is a mounted cache (`RUN --mount=type=cache`). For the second
table, `{_ADDED}` is added to the file; the tools have built the other three before. Holdfast builds a second
environment from the files that it has, `docker build` runs the whole `pip install` again. The last line keeps that
file and adds a line to the Dockerfile instead, so that only one package is installed; it has no bar. All use the
package index of the machine's pip."""


def measure(session: Session) -> Row:
    with engine() as daemon:
        packages, added = pinned(*_NAMES), pinned(*_NAMES, _ADDED)
        ours, hand = _place(session, daemon, NAME), _place(session, daemon, f"{NAME}-build")
        session.say("making the images that builds begin with, and warming caches")
        classic, kit = Builder(), Builder(with_buildkit=True)
        make_bases(hand, added)
        with suppress(FailedError):  # an engine without BuildKit: its lines say so
            _built(hand, kit, added, "first")
        attach(ours, image=BASE)
        _submitted(ours, added, [])
        imports: dict[str, list[float]] = {_OURS: [], _BUILD: []}
        numbers = (str(number) for number in itertools.count(1))
        contenders = in_turn(
            daemon,
            [
                Contender(_OURS, lambda: _submitted(ours, packages, imports[_OURS])),
                Contender(_BUILD, lambda: _built(hand, classic, packages, next(numbers), imports[_BUILD])),
                Contender(_OURS_ADDED, lambda: _submitted_with_one_more(ours, daemon, packages, added)),
                Contender(_KIT, lambda: _built(hand, kit, packages, next(numbers))),
                Contender(_BUILD_ADDED, lambda: _built(hand, classic, added, next(numbers))),
                Contender(_KIT_ADDED, lambda: _built(hand, kit, added, next(numbers))),
                Contender(_LINE, lambda: _built_with_a_line(hand, classic, packages, next(numbers))),
            ],
        )
        figures = session.compare(contenders, usual=3, warm_up=0)
    note = first_imports.note(figures, imports, _OURS, _BUILD, "in what `docker build` made")
    first, *others = lines({_OURS: None, _BUILD: Bar(0.3), _KIT: None}, figures)
    second, *rest = lines({_OURS_ADDED: None, _BUILD_ADDED: Bar(0.1), _KIT_ADDED: None, _LINE: None}, figures)
    return Row(
        NAME,
        TITLE,
        _HOW,
        (
            Table("A new environment", "s", 1, first, tuple(others), note),
            Table("After adding one package", "s", 1, second, tuple(rest)),
        ),
    )


def profile(session: Session) -> str:
    with engine() as daemon:
        packages, added = pinned(*_NAMES), pinned(*_NAMES, _ADDED)
        place = _place(session, daemon, f"{NAME}-profile")
        attach(place)
        _submitted(place, added, [])
        forget_environments(place)
        write_packages(place, packages)
        parts = [profiles.run_timeline(place, [*_COMMAND[1:], "s.py"])]
        write_packages(place, added)
        parts += ["With one package more:", profiles.run_timeline(place, [*_COMMAND[1:], "s.py"])]
        forget_environments(place)
        return "\n\n".join([*parts, calls(place, [*_COMMAND, "s.py"])])


def _place(session: Session, daemon: Daemon, name: str) -> Place:
    place = using(kept_place(session, name), daemon)
    (place.project / "s.py").write_text('print("hi")\n')
    (place.project / "t.py").write_text(first_imports.SCRIPT)
    return place


def _submitted(place: Place, packages: Sequence[str], imports: list[float]) -> float:
    """The first import is noted apart."""
    forget_environments(place)
    write_packages(place, packages)
    seconds = children.seconds(place, [*_COMMAND, "s.py"], "hi")
    imports.append(children.seconds(place, [*_COMMAND, "t.py"], "hi"))
    return seconds


def _submitted_with_one_more(place: Place, daemon: Daemon, packages: Sequence[str], added: Sequence[str]) -> float:
    forget_environments(place)
    write_packages(place, packages)
    children.run(place, [*_COMMAND, "s.py"], "hi")
    write_packages(place, added)
    settle(daemon)
    return children.seconds(place, [*_COMMAND, "s.py"], "hi")


def _built(
    place: Place, builder: Builder, packages: Sequence[str], unlike: str, imports: list[float] | None = None
) -> float:
    forget_image(place)
    builder.write(place.project, packages, unlike)
    seconds = builder.seconds(place)
    if imports is not None:
        imports.append(children.seconds(place, ["sh", "-c", run_line("t.py")], "hi"))
    return seconds


def _built_with_a_line(place: Place, builder: Builder, packages: Sequence[str], unlike: str) -> float:
    """The image of the other packages exists; the comment prevents the reuse of an earlier layer of the added line."""
    builder.write(place.project, packages)
    builder.seconds(place)
    builder.write(place.project, packages, more=f"RUN pip install -q '{pinned(_ADDED)[0]}' # {unlike}")
    return builder.seconds(place)
