"""Asking several machines about their unfinished runs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import children
import profiles
from children import PROGRAMS, Place
from far_boxes import HALF_A_TRIP, FarBox, disconnect, far_boxes, make_box, reaching
from measuring import Contender, FailedError, Figures, one
from results import Bar, Line, Row, Table, lines
from session import Session

NAME = "boxes"
TITLE = "`history list` with 50 unfinished runs on 5 machines"
TOOLS: tuple[str, ...] = ("holdfast",)

_BOXES = 5
_LIST = ["holdfast", "history", "list", "-o", "json", "--query", "[].status"]
_ALL, _FIVE_TIMES, _ONE = "5 machines", "5 times one machine", "one machine"
_HOW = """\
{runs} runs sleep on each of {boxes} machines, each with its own OpenSSH server and account. The list is requested
with no connection open. Connections are counted on the way to each machine, and the list counts as done only when
it shows every run as running. The time is compared with {boxes} times that of a project with as many runs on one
machine. The first comparison is on loopback, where the processors are the limit, the second at a round trip of 200
ms, where waiting is."""


def measure(session: Session) -> Row:
    runs = session.amount(10)
    with far_boxes() as kit:
        client = kit.client()
        known = [make_box(kit, f"gpu{number + 1}", True, client) for number in range(_BOXES)]
        place, single = _project(session, "boxes", known), _project(session, "boxes-one", known[:1])
        session.say(f"starting {runs * (_BOXES + 1)} runs")
        _start(place, known, runs)
        _start(single, known[:1], runs)
        before = [far.box.link.counters.connections for far in known]
        _ask(place, runs * _BOXES)
        made = [far.box.link.counters.connections - count for far, count in zip(known, before, strict=True)]
        tables = [_counted(made), _timed(session, "Time on loopback", place, single, runs)]
        for far in known:
            far.box.link.slow(HALF_A_TRIP)
        tables.append(_timed(session, "Time at a round trip of 200 ms", place, single, runs))
    return Row(NAME, TITLE, _HOW.format(runs=runs, boxes=_BOXES), tuple(tables))


def profile(session: Session) -> str:
    with far_boxes() as kit:
        client = kit.client()
        known = [make_box(kit, f"gpu{number + 1}", False, client) for number in range(_BOXES)]
        place = _project(session, "boxes-profile", known)
        _start(place, known, session.amount(10))
        parts = []
        for look in (profiles.import_times, profiles.cpu_profile):
            disconnect(place)
            parts.append(look(place, _LIST[1:]))
        return "\n\n".join(parts)


def _project(session: Session, name: str, known: Sequence[FarBox]) -> Place:
    place = reaching(session.place(name), known)
    (place.project / "s.py").write_text("import time\ntime.sleep(3600)\n")
    return place


def _start(place: Place, known: Sequence[FarBox], runs: int) -> None:
    children.run(place, ["python", PROGRAMS / "submit_detached.py", str(runs), *(far.name for far in known)])


def _ask(place: Place, count: int) -> float:
    disconnect(place)
    done = children.run(place, _LIST)
    statuses = json.loads(done.out)
    if statuses != ["Running"] * count:
        raise FailedError(f"{statuses.count('Running')} of {count} runs are shown as running")
    return done.seconds


def _counted(made: Sequence[int]) -> Table:
    most = Line("the machine with the most", one(max(made)), Bar(1))
    fewest = Line("the machine with the fewest", one(min(made)), is_peer=False)
    return Table("Connections for each machine", "connections", 1, most, (fewest,))


def _timed(session: Session, title: str, place: Place, single: Place, runs: int) -> Table:
    figures = session.compare(
        [
            Contender(_ALL, lambda: _ask(place, runs * _BOXES)),
            Contender(_ONE, lambda: _ask(single, runs)),
        ],
        usual=3,
    )
    alone = figures[_ONE]
    figures[_FIVE_TIMES] = Figures(tuple(value * _BOXES for value in alone.values), alone.problem)
    first, *others = lines({_ALL: None, _FIVE_TIMES: None, _ONE: None}, figures)
    return Table(title, "ms", 1000, first, tuple(others))
