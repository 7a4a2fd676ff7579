"""What data beside the project adds to a second run on a machine that has it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import children
import profiles
from children import Place
from far_boxes import FarBox, far_boxes, make_box, reaching
from measuring import Contender, FailedError, Figures, one
from results import Bar, Line, Row, Table, lines
from session import Session

NAME = "data-again"
TITLE = "1 GB of data beside the project: what it adds to a second run"
TOOLS: tuple[str, ...] = ("holdfast",)

_PLAIN, _DATA = "`holdfast submit s.py`", "`holdfast submit --data FOLDER:data s.py`"
_FILES = 1000
_HOW = """\
A machine over SSH, by a connection that is kept open. A run has read {size:.0f} MB of random bytes in {count:,} files,
named with `--data`, so the machine has them. Then a script that prints one word is submitted with this data and
without it. Every file's stat is compared with the one that was read, and the run gets a link. Sent is what goes to the
machine on the wire in such a submit with data, beyond that of one without."""


def measure(session: Session) -> Row:
    size = session.amount(1_000_000_000)
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place, data = _project(session, "data-again", far, size)
        figures = session.compare(
            [
                Contender(_DATA, lambda: children.seconds(place, _submit(data), "hi")),
                Contender(_PLAIN, lambda: children.seconds(place, _submit(), "hi")),
            ],
            usual=21,
            warm_up=2,
        )
        shutil.rmtree(data)
        counting = make_box(kit, "gpu1", through_link=True)
        counted, data = _project(session, "data-again-counted", counting, size // 10)
        sent = [_sent(counting, counted, data), _sent(counting, counted)]
    first, *others = lines({_DATA: None, _PLAIN: None}, figures)
    added = Line("added to a submit", _difference(figures), Bar(50))
    travels = Line("sent beside the plan", one(float(sent[0] - sent[1])), Bar(64))
    tables = (
        Table("Added", "ms", 1000, added),
        Table("Sent", "KiB", 1 / 1024, travels),
        Table("The whole submit", "ms", 1000, first, tuple(others)),
    )
    return Row(NAME, TITLE, _HOW.format(size=size / 1e6, count=_FILES), tables)


def profile(session: Session) -> str:
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place, data = _project(session, "data-again-profile", far, session.amount(1_000_000_000))
        command = _submit(data)[1:]
        return "\n\n".join([profiles.run_timeline(place, command), profiles.cpu_profile(place, command)])


def _submit(data: Path | None = None) -> list[str]:
    options = [] if data is None else ["--data", f"{data}:data"]
    return ["holdfast", "submit", "-c", "gpu1", *options, "s.py"]


def _project(session: Session, name: str, far: FarBox, size: int) -> tuple[Place, Path]:
    place = reaching(session.place(name), [far])
    (place.project / "s.py").write_text('print("hi")\n')
    data = place.root / "data"
    data.mkdir()
    for number in range(_FILES):
        (data / f"{number:05d}.bin").write_bytes(os.urandom(size // _FILES))
    session.say("the first time, with the data")
    children.run(place, _submit(data))
    return place, data


def _sent(far: FarBox, place: Place, data: Path | None = None) -> int:
    """On a machine that has it; each time over the kept connection."""
    children.run(place, _submit(data))
    before = far.box.link.counters.to_server
    children.run(place, _submit(data))
    return far.box.link.counters.to_server - before


def _difference(figures: dict[str, Figures]) -> Figures:
    for each in figures.values():
        if not each.values:
            raise FailedError("a submit failed")
    return one(figures[_DATA].median - figures[_PLAIN].median)
