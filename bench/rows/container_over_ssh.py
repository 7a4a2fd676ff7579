"""A one-line script in a container on a machine over SSH, from the command to its end."""

from __future__ import annotations

import shlex

import children
import profiles
from changing_scripts import contender, write_script
from children import Place
from container_places import attach_far, engine, in_turn, make_docker_box, typed
from far_boxes import FarBox, disconnect, far_boxes, kept_connections
from results import Bar, Row, Table, lines
from session import Session

from kit.docker.daemon import Daemon

NAME = "container-over-ssh"
TITLE = "A one-line script in a container on a machine over SSH"
TOOLS: tuple[str, ...] = ("holdfast",)

_OURS = ["holdfast", "submit", "-c", "gpu1", "s.py"]
_NEW, _KEPT = "`holdfast submit`, new connection", "`holdfast submit`, kept connection"
_RUN, _RUN_HOST = "`ssh gpu1 docker run`", "`ssh gpu1 docker run --network host`"
_SENT, _MASTER = "`rsync`, then `ssh gpu1 docker run`", "`ssh gpu1 docker run`, over a ControlMaster"
_HOW = """\
A real OpenSSH server on loopback, an account with a key that may use a Docker engine, and the same image for all,
all used before. The script changes before every command, and the word that it prints is checked. By hand: `ssh gpu1
'docker run --rm -v ~/project:/work -w /work IMAGE python3 s.py'`. The changed script is already on the machine, and
copying it does not count. It does count in the line with `rsync -a ./ gpu1:project/ &&`, and for Holdfast in all
lines. Holdfast has two states: with no connection open, and with the one that it keeps open for a minute after each
command. Its containers are on the machine's network, as in the line with `--network host`. A command begins when no
container of the previous one is left."""


def measure(session: Session) -> Row:
    with engine() as daemon, far_boxes() as kit:
        return Row(NAME, TITLE, _HOW, _tables(session, daemon, make_docker_box(kit, daemon, "gpu1")))


def profile(session: Session) -> str:
    command = _OURS[1:]
    with engine() as daemon, far_boxes() as kit:
        place = _project(session, "far-profile", make_docker_box(kit, daemon, "gpu1"))
        children.run(place, _OURS)
        parts = [profiles.run_timeline(place, command), profiles.import_times(place, command)]
        parts.append(profiles.cpu_profile(place, command))
        disconnect(place)
        return "\n\n".join([*parts, "With a new connection:", profiles.run_timeline(place, command)])


def _tables(session: Session, daemon: Daemon, far: FarBox) -> tuple[Table, Table]:
    new, kept = _project(session, "far-new", far), _project(session, "far-kept", far)
    hand = session.place("far-hand")
    master = ["-o", "ControlMaster=auto", "-o", f"ControlPath={hand.root}/m", "-o", "ControlPersist=60"]
    there = far.box.account.home / "project"
    far.box.account.write("project/s.py", "")
    sent = f"rsync -a -e '{far.ssh()}' ./ {far.name}:sent/ && {_by_hand(far, 'sent')}"
    contenders = in_turn(
        daemon,
        [
            contender(_KEPT, kept, _OURS, lambda: _connect(kept)),
            contender(_RUN, hand, ["sh", "-c", _by_hand(far, "project")], folder=there),
            contender(_NEW, new, _OURS, lambda: disconnect(new)),
            contender(_MASTER, hand, ["sh", "-c", _by_hand(far, "project", master)], folder=there),
            contender(_RUN_HOST, hand, ["sh", "-c", _by_hand(far, "project", (), "--network", "host")], folder=there),
            contender(_SENT, hand, ["sh", "-c", sent]),
        ],
    )
    figures = session.compare(contenders, usual=11, warm_up=2)
    first, *others = lines({_NEW: None, _RUN: Bar(1.6), _RUN_HOST: None, _SENT: None}, figures)
    second, *rest = lines({_KEPT: None, _RUN: None, _MASTER: None}, figures)
    return (
        Table("New connection", "ms", 1000, first, tuple(others)),
        Table("Second submit within a minute", "ms", 1000, second, tuple(rest)),
    )


def _project(session: Session, name: str, far: FarBox) -> Place:
    # A short name: the kept connection has its socket below it, and the path of a socket has 107 bytes at most.
    place = attach_far(session.place(name), far)
    write_script(place.project, "first")
    return place


def _connect(place: Place) -> None:
    if not kept_connections(place):
        children.run(place, _OURS)


def _by_hand(far: FarBox, folder: str, ssh: list[str] | tuple[()] = (), *options: str) -> str:
    line = shlex.join(typed(f"{far.box.account.home}/{folder}", *options))
    return f"{far.ssh(*ssh)} {far.name} {shlex.quote(line)}"
