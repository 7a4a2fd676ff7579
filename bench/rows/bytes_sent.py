"""What travels to a machine when one file of a large project has changed."""

from __future__ import annotations

import random

import children
import profiles
from children import Place
from far_boxes import FarBox, disconnect, far_boxes, make_box, reaching
from many_files import FOLDERS, write_files
from measuring import Contender
from results import Bar, Line, Row, Table
from session import Session

NAME = "bytes-sent"
TITLE = "One changed file in a project of 10,000 files: bytes sent"
TOOLS: tuple[str, ...] = ("holdfast",)

_CHANGED = 100_000
_LIMIT = 64
_OURS = ["holdfast", "submit", "-c", "gpu1", "s.py"]
_HOW = """\
A project has {count:,} files of about 1 kB in {folders} folders and was submitted once. Then one file gets
{changed:,} random bytes, which cannot be compressed, and the project is submitted again. The row counts everything
that goes to the machine on the wire: the file, the list of changed files, the run's plan, the SSH protocol and,
with a new connection, its handshake. The table shows what is left without the {changed:,} bytes of the file.
`rsync` sends the list of all files each time."""


def measure(session: Session) -> Row:
    count = session.amount(10_000)
    with far_boxes() as kit:
        far = make_box(kit, "gpu1", through_link=True)
        place, hand = _project(session, "bytes", far, count), _project(session, "bytes-hand", far, count)
        rsync = ["sh", "-c", f"rsync -a -e '{far.ssh()}' ./ {far.name}:project/"]
        session.say("the first time, with everything")
        for each, argv in ((place, _OURS), (hand, rsync)):
            children.run(each, argv)
        kept, new, by_hand = "kept connection", "new connection", "`rsync -a` by hand, new connection"
        figures = session.compare(
            [
                Contender(kept, lambda: _sent(far, place, _OURS)),
                Contender(new, lambda: _sent(far, place, _OURS, is_new=True)),
                Contender(by_hand, lambda: _sent(far, hand, rsync)),
            ],
            usual=2,  # the same bytes each time, but for a few
            warm_up=0,
        )
    how = _HOW.format(count=count, folders=FOLDERS, changed=_CHANGED)
    bar = Bar(_LIMIT)
    tables = [
        Table(f"Beside the file, {name}", "KiB", 1 / 1024, Line(name, figures[name], bar)) for name in (kept, new)
    ]
    other = Line(by_hand, figures[by_hand])
    tables[1] = Table(tables[1].title, "KiB", 1 / 1024, tables[1].ours, (other,))
    return Row(NAME, TITLE, how, tuple(tables))


def profile(session: Session) -> str:
    with far_boxes() as kit:
        place = _project(session, "bytes-profile", make_box(kit, "gpu1"), session.amount(10_000))
        for _ in range(2):
            children.run(place, _OURS)
        return "\n\n".join([profiles.run_timeline(place, _OURS[1:]), profiles.cpu_profile(place, _OURS[1:])])


def _project(session: Session, name: str, far: FarBox, count: int) -> Place:
    return write_files(reaching(session.place(name), [far]), count)


def _sent(far: FarBox, place: Place, argv: list[str], is_new: bool = False) -> float:
    (place.project / "part000" / "changed.bin").write_bytes(random.randbytes(_CHANGED))
    if is_new:
        disconnect(place)
    before = far.box.link.counters.to_server
    children.run(place, argv)
    return far.box.link.counters.to_server - before - _CHANGED
