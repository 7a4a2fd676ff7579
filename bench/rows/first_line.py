"""From nothing to the first line of output in a container on a new machine: what a person has to edit on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import children
import profiles
from children import Place
from container_places import engine, make_docker_box
from far_boxes import far_boxes
from measuring import one
from results import Bar, Line, Row, Table
from session import Session

from kit.docker.images import PLAIN
from kit.docker.pythons import downloads

NAME = "first-line"
TITLE = "From an empty project to the first line of output in a container on a new machine"
TOOLS: tuple[str, ...] = ("holdfast",)

_DEFAULT_IMAGE = "ubuntu:24.04"
_CREATE = "holdfast project create first"
_ATTACH = "holdfast computetarget attach remotedocker --name my_dsvm --address my_dsvm"
_SUBMIT = "holdfast submit -c my_dsvm train.py"
_PRINTED = "logged 5 values"
_HOW = f"""\
A machine that Holdfast has never seen: an account with an empty home behind an OpenSSH server, which may use
Docker. The reader's `~/.ssh/config` names it `my_dsvm`. Exactly these commands are typed: `{_CREATE}`, `cd first`,
`{_ATTACH}`, `{_SUBMIT}`. All files of the project are read after each command and before the next one: a file that
changed in between was edited by a person. The image that attach writes by default is already on the machine: a
Debian without a Python represents it, because `ubuntu:24.04` has none. uv installs a Python; its archive comes from
this machine, so that no network is measured."""


def measure(session: Session) -> Row:
    with engine() as daemon, far_boxes() as kit, downloads() as pythons:
        daemon.run("tag", PLAIN, _DEFAULT_IMAGE)
        far = make_docker_box(kit, daemon, "my_dsvm", pythons.environment)
        place = session.fresh_place(NAME)
        person = Person(replace(place, variables=tuple(far.box.environment.items())))
        took = [
            (_CREATE, person.types(_CREATE)),
            (_ATTACH, person.types(f"cd first && {_ATTACH}", "aml_config/my_dsvm.compute")),
            (_SUBMIT, person.types(f"cd first && {_SUBMIT}", _PRINTED)),
        ]
    return Row(NAME, TITLE, _HOW, tables(person.edited, took))


def profile(session: Session) -> str:
    """The first submit, which sends the far side and builds the environment."""
    with engine() as daemon, far_boxes() as kit, downloads() as pythons:
        daemon.run("tag", PLAIN, _DEFAULT_IMAGE)
        far = make_docker_box(kit, daemon, "my_dsvm", pythons.environment)
        place = replace(session.fresh_place(NAME), variables=tuple(far.box.environment.items()))
        (place.project / "train.py").write_text('print("hi")\n')
        children.run(place, _ATTACH.split())
        return profiles.run_timeline(place, _SUBMIT.split()[1:])


class Person:
    """A person who types commands in the place's project, and may edit a file between two of them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._left = _contents(place)
        self.edited: list[str] = []

    def types(self, command: str, expect: str = "") -> float:
        """Seconds until it has ended. Raises FailedError unless it succeeds and prints `expect`."""
        found = _contents(self._place)
        every = sorted(found.keys() | self._left.keys())
        self.edited += [name for name in every if found.get(name) != self._left.get(name)]
        seconds = children.seconds(self._place, ["sh", "-c", command], expect)
        self._left = _contents(self._place)
        return seconds


def tables(edited: Sequence[str], took: Sequence[tuple[str, float]]) -> tuple[Table, Table]:
    count = Line("files that a person edited", one(len(edited)), Bar(0))
    whole = Line("all three commands", one(sum(seconds for _, seconds in took)))
    each = tuple(Line(f"`{name}`", one(seconds), is_peer=False) for name, seconds in took)
    named = f"Edited: {', '.join(edited)}." if edited else ""
    return Table("Edited", "files", 1, count, note=named), Table("Time", "s", 1, whole, each)


def _contents(place: Place) -> Mapping[str, str]:
    """The project's files without `.holdfast`, which living runs write to."""
    return {
        str(path.relative_to(place.project)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.project.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }
