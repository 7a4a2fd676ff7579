"""The snapshot of a project in which nothing has changed since the last one."""

from __future__ import annotations

import children
import profiles
from children import Place
from many_files import FOLDERS, write_files
from measuring import Contender
from results import Bar, Row, Table, lines
from session import Session

NAME = "snapshot"
TITLE = "Second snapshot of an unchanged project of 10,000 files"
TOOLS: tuple[str, ...] = ("holdfast",)

_OURS, _ADD, _PROCESS = "`take_snapshot`", "`git add -A`", "`take_snapshot` with the start of Python"
_HOW = """\
{count:,} files of about 1 kB in {folders} folders, committed, and submitted once with `holdfast submit`; nothing
changes after that. `take_snapshot` is the step that `submit` takes: called once in a fresh process, with its
imports but without the start of Python, which is in the last line. `git add -A` is a whole process, as it has to
be. Without git, Holdfast itself applies the rules of `.amlignore`, and there is nothing to compare with."""


def measure(session: Session) -> Row:
    count = session.amount(10_000)
    session.say("writing the files")
    inside, outside = _project(session, "snapshot", count), _project(session, "snapshot-no-git", count)
    _commit(inside)
    for place in (inside, outside):
        children.run(place, ["holdfast", "submit", "s.py"], "hi")
    bare = "`take_snapshot`, no git"
    figures = session.compare(
        [
            Contender(_OURS, lambda: children.figure(inside, "snapshot_once.py")),
            Contender(_ADD, lambda: children.seconds(inside, ["git", "add", "-A"])),
            Contender(bare, lambda: children.figure(outside, "snapshot_once.py")),
            Contender(_PROCESS, lambda: children.seconds(inside, ["python", children.PROGRAMS / "snapshot_once.py"])),
        ],
        usual=20,
        warm_up=3,  # the first ones store files whose times were too fresh to be trusted
    )
    first, *others = lines({_OURS: None, _ADD: Bar(3), bare: None, _PROCESS: None}, figures, (bare, _PROCESS))
    how = _HOW.format(count=count, folders=FOLDERS)
    return Row(NAME, TITLE, how, (Table("", "ms", 1000, first, tuple(others)), _whole_submit(session, inside)))


def profile(session: Session) -> str:
    place = _project(session, "snapshot-profile", session.amount(10_000))
    _commit(place)
    for _ in range(3):
        children.run(place, ["python", children.PROGRAMS / "snapshot_once.py"])
    parts = [profiles.program_profile(place, "snapshot_once.py")]
    children.run(place, ["holdfast", "submit", "s.py"])
    parts += [profiles.run_timeline(place, ["submit", "s.py"]), profiles.cpu_profile(place, ["submit", "s.py"])]
    return "\n\n".join(parts)


def _project(session: Session, name: str, count: int) -> Place:
    return write_files(session.place(name), count)


def _commit(place: Place) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "All files"]):
        children.run(place, ["git", *command])


def _whole_submit(session: Session, place: Place) -> Table:
    name = "`holdfast submit s.py`"
    argv = ["holdfast", "submit", "s.py"]
    figures = session.compare([Contender(name, lambda: children.seconds(place, argv, "hi"))], usual=3, warm_up=0)
    note = "The run's folder gets its own copy of every file, which takes most of the time."
    return Table("The whole submit of that project", "ms", 1000, lines({name: None}, figures)[0], note=note)
