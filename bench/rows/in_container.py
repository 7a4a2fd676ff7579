"""A one-line script in a container on this machine, from the command to its end."""

from __future__ import annotations

from pathlib import Path

import children
import profiles
from children import Place
from container_places import attach, calls, engine, in_turn, typed, using
from measuring import Contender
from results import Bar, Row, Table, lines
from session import Session

from kit.docker.daemon import Daemon

NAME = "in-container"
TITLE = "A one-line script in a container"
TOOLS: tuple[str, ...] = ("holdfast",)

_COMMAND = ["holdfast", "submit", "-c", "here", "s.py"]
_OURS, _OURS_BRIDGE = "`holdfast submit s.py`", "`holdfast submit s.py`, with `network: bridge`"
_RUN, _RUN_HOST = "`docker run`", "`docker run --network host`"
_HOW = """\
A private Docker engine, the same image for all, and nothing to fetch, build or inspect for the first time. The
script prints one word, and the output is checked. By hand: `docker run --rm -v "$PWD":/work -w /work IMAGE python3
s.py`, the image's own Python on the live folder. Holdfast uses the target that `computetarget attach docker`
writes: an environment without packages, a snapshot, and a record of the run. By default its containers are on the
machine's network, while `docker run` makes a new network, which takes time. The line with `--network host` and the
second table compare like with like. Each is a whole process, from its start to its exit: `docker run --rm` ends
when its container is removed, `holdfast submit` when the run has ended. The next one begins when no container is
left."""


def measure(session: Session) -> Row:
    with engine() as daemon:
        ours, bridge = _project(session, daemon, NAME), _project(session, daemon, f"{NAME}-bridge", "network: bridge")
        plain, host = _script(session, daemon, f"{NAME}-plain"), _script(session, daemon, f"{NAME}-host")
        contenders = in_turn(
            daemon,
            [
                Contender(_OURS, lambda: children.seconds(ours, _COMMAND, "hi")),
                Contender(_RUN, lambda: children.seconds(plain, typed(plain.project), "hi")),
                Contender(_OURS_BRIDGE, lambda: children.seconds(bridge, _COMMAND, "hi")),
                Contender(_RUN_HOST, lambda: children.seconds(host, typed(host.project, "--network", "host"), "hi")),
            ],
        )
        figures = session.compare(contenders, usual=11, warm_up=2)
    first, *others = lines({_OURS: None, _RUN: Bar(2), _RUN_HOST: None}, figures)
    second, *rest = lines({_OURS_BRIDGE: None, _RUN: None}, figures)
    return Row(
        NAME,
        TITLE,
        _HOW,
        (
            Table("As each is by itself", "ms", 1000, first, tuple(others)),
            Table("Both on a network of Docker's", "ms", 1000, second, tuple(rest)),
        ),
    )


def profile(session: Session) -> str:
    with engine() as daemon:
        place = _project(session, daemon, f"{NAME}-profile")
        children.run(place, _COMMAND)
        command = _COMMAND[1:]
        return "\n\n".join(
            [
                profiles.run_timeline(place, command),
                calls(place, _COMMAND),
                calls(place, typed(place.project)),
                profiles.import_times(place, command),
                profiles.cpu_profile(place, command),
            ]
        )


def _project(session: Session, daemon: Daemon, name: str, *compute: str) -> Place:
    place = _script(session, daemon, name)
    attach(place, *compute)
    return place


def _script(session: Session, daemon: Daemon, name: str) -> Place:
    place = using(session.place(name), daemon)
    _write(place.project)
    return place


def _write(folder: Path) -> None:
    (folder / "s.py").write_text('print("hi")\n')
