"""Fetching thousands of small files that a run wrote beside its code, from a machine over SSH."""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

import children
import profiles
from children import Place
from far_boxes import FarBox, disconnect, far_boxes, make_box, reaching
from measuring import Contender, FailedError
from results import Bar, Row, Table, lines
from session import Session

from kit.waiting import wait_for

NAME = "small-outputs"
TITLE = "10,000 small outputs home"
TOOLS: tuple[str, ...] = ("holdfast",)

_FOLDERS = 100
_FOLDER = "results"
_SCRIPT = f"""\
import os, shutil
shutil.copytree(os.path.expanduser("~/{_FOLDER}"), "{_FOLDER}")
"""
_FILL = f"""\
import os, sys
for number in range(int(sys.argv[1])):
    folder = "{_FOLDER}/part%03d" % (number % {_FOLDERS})
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%05d.json" % number), "w") as target:
        target.write('{{"number": %d}}\\n' % number * 10)
"""
_OURS, _TAR = "`holdfast logs -f`", "`tar`, piped through `ssh`"
_HOW = """\
A run has ended on its machine, and what it wrote has not been fetched yet: {count:,} files of about 200 bytes in
{folders} folders outside `outputs/`. `holdfast logs -f` fetches them; by hand, `ssh gpu1 tar c {folder} | tar x`
copies the same files from the same account. Both make a new connection, and the files are compared afterwards. Holdfast
also reads the run's log and record, and checks each file by its SHA-256 on both sides."""


def measure(session: Session) -> Row:
    count = session.amount(10_000)
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place = _project(session, "small-outputs", far, count)
        figures = session.compare(
            [Contender(_OURS, lambda: _fetch(far, place)), Contender(_TAR, lambda: _copy(far, place))], usual=5
        )
    first, *others = lines({_OURS: None, _TAR: Bar(1.3)}, figures)
    how = _HOW.format(count=count, folders=_FOLDERS, folder=_FOLDER)
    return Row(NAME, TITLE, how, (Table("", "ms", 1000, first, tuple(others)),))


def profile(session: Session) -> str:
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place = _project(session, "small-outputs-profile", far, session.amount(10_000))
        return profiles.cpu_profile(place, ["logs", "-f", "-r", _ended_run(far, place)])


def _project(session: Session, name: str, far: FarBox, count: int) -> Place:
    far.box.account.run(["/usr/bin/python3", "-c", _FILL, str(count)]).check_returncode()
    place = reaching(session.place(name), [far])
    (place.project / "s.py").write_text(_SCRIPT)
    return place


def _ended_run(far: FarBox, place: Place) -> str:
    """A run that has ended on its machine, while the near side does not know it yet."""
    argv = ["holdfast", "submit", "-a", "-c", "gpu1", "-o", "tsv", "--query", "run_id", "s.py"]
    run_id = children.run(place, argv).out.strip()
    journal = next(far.box.home.glob("runs/*")) / run_id / "journal.jsonl"
    wait_for(lambda: '"ended"' in journal.read_text(), seconds=60, what="the run has ended")
    return run_id


def _fetch(far: FarBox, place: Place) -> float:
    run_id = _ended_run(far, place)
    disconnect(place)
    took = children.seconds(place, ["holdfast", "logs", "-f", "-r", run_id])
    arrived = place.project / ".holdfast" / "runs" / run_id / "files"
    _require_same(far.box.account.home / _FOLDER, arrived / _FOLDER)
    for folder in (
        arrived,
        next(far.box.home.glob("runs/*")) / run_id / "work/above/above/above" / place.project.name / _FOLDER,
    ):
        shutil.rmtree(folder)
    return took


def _copy(far: FarBox, place: Place) -> float:
    target = place.root / "copied"
    target.mkdir()
    own = "--no-same-owner --no-same-permissions"  # as for whoever is not root
    take = f"{far.ssh()} {far.name} tar c {_FOLDER} | tar x {own} -C {target}"
    took = children.seconds(place, ["sh", "-c", take])
    _require_same(far.box.account.home / _FOLDER, target / _FOLDER)
    shutil.rmtree(target)
    return took


def _require_same(there: Path, here: Path) -> None:
    for part in sorted(there.iterdir()):
        names = sorted(os.listdir(part))
        if filecmp.cmpfiles(part, here / part.name, names, shallow=False)[0] != names:
            raise FailedError("what arrived is not what was there")
