"""A one-line script on a machine over SSH, from the command to its end."""

from __future__ import annotations

from collections.abc import Callable

import children
import profiles
from changing_scripts import contender, write_script
from children import Place
from far_boxes import HALF_A_TRIP, FarBox, disconnect, far_boxes, kept_connections, make_box, reaching
from results import Bar, Row, Table, lines
from session import Session

NAME = "over-ssh"
TITLE = "A one-line script on a machine over SSH"
TOOLS: tuple[str, ...] = ("holdfast",)

_OURS = ["holdfast", "submit", "-c", "gpu1", "s.py"]
_NEW, _KEPT = "`holdfast submit`, new connection", "`holdfast submit`, kept connection"
_HAND, _HAND_KEPT = "`rsync`, then `ssh`", "`rsync`, then `ssh`, over a ControlMaster"
_TAR = "`tar`, piped into `ssh`"
_HOW = """\
A real OpenSSH server on loopback, an account with an empty home, and a key. The script changes before every
command, and the word that it prints is checked. By hand: `rsync -a ./ gpu1:project/ && ssh gpu1 'cd project &&
python3 s.py'`, which makes two connections. Holdfast has two states: with no connection open, and with the one that
it keeps open for a minute after each command. The machine has run a script of this project before. The line with a
ControlMaster does by hand what Holdfast's kept connection does. In the last table, both are delayed by {delay:.0f}
ms in each direction. There, by hand is `tar c . | ssh gpu1 'cd project && tar x && python3 s.py'`: one connection,
no check of what the machine already has, and no record of the run but its output."""


def measure(session: Session) -> Row:
    with far_boxes() as kit:
        near = _near(session, make_box(kit, "gpu1"))
        slow = make_box(kit, "gpu1", through_link=True)
        far = _far_away(session, slow, lambda: slow.box.link.slow(HALF_A_TRIP))
    return Row(NAME, TITLE, _HOW.format(delay=HALF_A_TRIP * 1000), (*near, far))


def profile(session: Session) -> str:
    command = _OURS[1:]
    with far_boxes() as kit:
        place = _project(session, "over-ssh-profile", make_box(kit, "gpu1"))
        children.run(place, _OURS)
        parts = [profiles.run_timeline(place, command), profiles.import_times(place, command)]
        parts.append(profiles.cpu_profile(place, command))
        disconnect(place)
        return "\n\n".join([*parts, "With a new connection:", profiles.run_timeline(place, command)])


def _near(session: Session, far: FarBox) -> tuple[Table, Table]:
    new, kept = _project(session, "over-ssh-new", far), _project(session, "over-ssh-kept", far)
    hand, hand_kept = _project(session, "over-ssh-hand", far), _project(session, "over-ssh-hand-kept", far)
    master = ["-o", "ControlMaster=auto", "-o", f"ControlPath={hand_kept.root}/m", "-o", "ControlPersist=60"]
    figures = session.compare(
        [
            contender(_KEPT, kept, _OURS, lambda: _connect(kept)),
            contender(_HAND, hand, _by_hand(far, "project")),
            contender(_NEW, new, _OURS, lambda: disconnect(new)),
            contender(_HAND_KEPT, hand_kept, _by_hand(far, "other-project", *master)),
        ],
        usual=11,
        warm_up=2,
    )
    first, *others = lines({_NEW: None, _HAND: Bar(0.7)}, figures)
    second, *rest = lines({_KEPT: None, _HAND: Bar(0.35), _HAND_KEPT: None}, figures)
    return (
        Table("New connection", "ms", 1000, first, tuple(others)),
        Table("Second submit within a minute", "ms", 1000, second, tuple(rest)),
    )


def _far_away(session: Session, far: FarBox, slow_down: Callable[[], None]) -> Table:
    new, kept = _project(session, "over-ssh-far", far), _project(session, "over-ssh-far-kept", far)
    hand = _project(session, "over-ssh-far-hand", far)
    for place in (new, kept):
        children.run(place, _OURS)  # so that the far side is there
    slow_down()
    piped = f"tar c . | {far.ssh()} {far.name} 'mkdir -p piped && cd piped && tar x && python3 s.py'"
    figures = session.compare(
        [
            contender(_KEPT, kept, _OURS, lambda: _connect(kept)),
            contender(_TAR, hand, ["sh", "-c", piped]),
            contender(_NEW, new, _OURS, lambda: disconnect(new)),
        ],
        usual=5,
    )
    first, *others = lines({_NEW: None, _TAR: Bar(2), _KEPT: None}, figures, own=(_KEPT,))
    return Table("At a round trip of 200 ms", "ms", 1000, first, tuple(others))


def _project(session: Session, name: str, far: FarBox) -> Place:
    place = reaching(session.place(name), [far])
    write_script(place.project, "first")
    return place


def _connect(place: Place) -> None:
    if not kept_connections(place):
        children.run(place, _OURS)


def _by_hand(far: FarBox, folder: str, *options: str) -> list[str]:
    ssh = far.ssh(*options)
    line = f"rsync -a -e '{ssh}' ./ {far.name}:{folder}/ && {ssh} {far.name} 'cd {folder} && python3 s.py'"
    return ["sh", "-c", line]
