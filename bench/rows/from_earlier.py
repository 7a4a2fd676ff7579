"""What it adds to a submit that the run begins with the files of an earlier one."""

from __future__ import annotations

import os
import shutil

import children
import profiles
from children import Place
from measuring import Contender, FailedError, Figures, one
from results import Bar, Line, Row, Table, lines
from session import Session

NAME = "from-earlier"
TITLE = "1 GB of an earlier run's files: what `--from` adds to a submit"
TOOLS: tuple[str, ...] = ("holdfast",)

_PLAIN, _FROM, _COPY = "`holdfast submit s.py`", "`holdfast submit --from RUN s.py`", "`cp`, of the same file"
_MAKE = """\
import os, sys
with open("checkpoint.bin", "wb") as target:
    for _ in range(int(sys.argv[1]) // 10**6):
        target.write(os.urandom(10**6))
"""
_HOW = """\
An earlier run on this machine has written one file of {size:.0f} MB. A script that prints one word is submitted with
that file and without it, and after each run its folder is removed. Where the disk can share blocks between files (XFS,
Btrfs), no byte is copied; this one {can}. Added is the difference of the medians."""


def measure(session: Session) -> Row:
    size = session.amount(1_000_000_000)
    place, run_id = _project(session, "from-earlier", size)
    source = next(place.home.glob(f".holdfast/runs/*/{run_id}/**/checkpoint.bin"))
    figures = session.compare(
        [
            Contender(_FROM, lambda: _timed(place, run_id, ["--from", run_id])),
            Contender(_PLAIN, lambda: _timed(place, run_id, [])),
            Contender(_COPY, lambda: _copied(place, os.fspath(source))),
        ],
        usual=11,
    )
    first, *others = lines({_FROM: None, _PLAIN: None, _COPY: None}, figures)
    added = Line("added to a submit", _difference(figures), Bar(200))
    how = _HOW.format(size=size / 1e6, can="can" if _can_share(place) else "cannot")
    return Row(
        NAME,
        TITLE,
        how,
        (Table("Added", "ms", 1000, added), Table("The whole submit", "ms", 1000, first, tuple(others))),
    )


def profile(session: Session) -> str:
    place, run_id = _project(session, "from-earlier-profile", session.amount(1_000_000_000))
    return profiles.run_timeline(place, ["submit", "--from", run_id, "s.py"])


def _project(session: Session, name: str, size: int) -> tuple[Place, str]:
    place = session.place(name)
    (place.project / "make.py").write_text(_MAKE)
    (place.project / "s.py").write_text('print("hi")\n')
    argv = ["holdfast", "submit", "-a", "-o", "tsv", "--query", "run_id", "make.py", str(size)]
    run_id = children.run(place, argv).out.strip()
    children.run(place, ["holdfast", "logs", "-f", "-r", run_id])
    return place, run_id


def _timed(place: Place, earlier: str, options: list[str]) -> float:
    took = children.seconds(place, ["holdfast", "submit", *options, "s.py"], "hi")
    for run in place.home.glob(".holdfast/runs/*/*_*"):
        if run.name != earlier:
            shutil.rmtree(run)
    return took


def _copied(place: Place, source: str) -> float:
    target = place.root / "copy.bin"
    took = children.seconds(place, ["cp", source, target])
    target.unlink()
    return took


def _can_share(place: Place) -> bool:
    for name in ("a", "b"):
        (place.root / name).write_bytes(b"x" * 4096)
    try:
        children.run(place, ["cp", "--reflink=always", place.root / "a", place.root / "b"])
    except FailedError:
        return False
    return True


def _difference(figures: dict[str, Figures]) -> Figures:
    for each in figures.values():
        if not each.values:
            return each
    return one(figures[_FROM].median - figures[_PLAIN].median)
