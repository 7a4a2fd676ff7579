"""Fetching the outputs of a run on a machine over SSH."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import children
import profiles
from children import Place
from far_boxes import FarBox, disconnect, far_boxes, make_box, reaching
from measuring import Contender, FailedError, Figures
from results import Bar, Row, Table, lines
from session import Session

from kit.waiting import wait_for

NAME = "outputs"
TITLE = "100 MB of outputs home"
TOOLS: tuple[str, ...] = ("holdfast",)

_FILES = 5
_SCRIPT = """\
import os, shutil, sys
shutil.copytree(os.path.expanduser("~/" + sys.argv[1]), "outputs", dirs_exist_ok=True)
"""
_OURS, _SCP = "`holdfast logs -f`", "`scp -r`"
_OURS_SMALL, _SCP_SMALL = "`holdfast logs -f`, one byte", "`scp -r`, one byte"
_HOW = """\
A run has ended on its machine, and its outputs have not been fetched yet: {count} files of {size:.0f} MB of random
bytes. `holdfast logs -f` fetches them; `scp -r` copies the same files from the same account. Both make a new
connection, and the files are compared afterwards. Holdfast also reads the run's log and record, checks each file by
its SHA-256 on both sides, and could resume an interrupted transfer."""


def measure(session: Session) -> Row:
    size = session.amount(20_000_000)
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place = _project(session, "outputs", far)
        _fill(far, "large", _FILES, size)
        _fill(far, "small", 1, 1)
        figures = session.compare(
            [
                Contender(_OURS, lambda: _fetch(far, place, "large")),
                Contender(_SCP, lambda: _copy(far, place, "large")),
                Contender(_OURS_SMALL, lambda: _fetch(far, place, "small")),
                Contender(_SCP_SMALL, lambda: _copy(far, place, "small")),
            ],
            usual=5,
        )
    first, *others = lines({_OURS: None, _SCP: Bar(1.2)}, figures)
    how = _HOW.format(count=_FILES, size=size / 1e6)
    return Row(NAME, TITLE, how, (Table("", "ms", 1000, first, tuple(others), _transfer_alone(figures)),))


def profile(session: Session) -> str:
    with far_boxes() as kit:
        far = make_box(kit, "gpu1")
        place = _project(session, "outputs-profile", far)
        _fill(far, "large", _FILES, session.amount(20_000_000))
        run_id = _ended_run(far, place, "large")
        return profiles.cpu_profile(place, ["logs", "-f", "-r", run_id])


def _project(session: Session, name: str, far: FarBox) -> Place:
    place = reaching(session.place(name), [far])
    (place.project / "s.py").write_text(_SCRIPT)
    return place


def _fill(far: FarBox, name: str, count: int, size: int) -> None:
    program = "import os, sys\nos.mkdir(sys.argv[1])\nfor n in range(int(sys.argv[2])):\n"
    program += "    open(os.path.join(sys.argv[1], 'part%d.bin' % n), 'wb').write(os.urandom(int(sys.argv[3])))\n"
    far.box.account.run(["/usr/bin/python3", "-c", program, name, str(count), str(size)]).check_returncode()


def _ended_run(far: FarBox, place: Place, what: str) -> str:
    """A run that has ended on its machine, while the near side does not know it yet."""
    argv = ["holdfast", "submit", "-a", "-c", "gpu1", "-o", "tsv", "--query", "run_id", "s.py", what]
    run_id = children.run(place, argv).out.strip()
    journal = next(far.box.home.glob("runs/*")) / run_id / "journal.jsonl"
    wait_for(lambda: '"ended"' in journal.read_text(), seconds=60, what="the run has ended")
    return run_id


def _fetch(far: FarBox, place: Place, what: str) -> float:
    run_id = _ended_run(far, place, what)
    disconnect(place)
    took = children.seconds(place, ["holdfast", "logs", "-f", "-r", run_id])
    arrived = place.project / ".holdfast" / "runs" / run_id / "outputs"
    _require_same(far.box.account.home / what, arrived)
    for folder in (
        arrived,
        next(far.box.home.glob("runs/*")) / run_id / "work/above/above/above" / place.project.name / "outputs",
    ):
        shutil.rmtree(folder)
    return took


def _copy(far: FarBox, place: Place, what: str) -> float:
    target = place.root / "copied"
    took = children.seconds(place, ["scp", "-q", *far.box.client.ssh[1:], "-r", f"{far.name}:{what}", target])
    _require_same(far.box.account.home / what, target)
    shutil.rmtree(target)
    return took


def _require_same(there: Path, here: Path) -> None:
    names = sorted(path.name for path in there.iterdir())
    if filecmp.cmpfiles(there, here, names, shallow=False)[0] != names:
        raise FailedError("what arrived is not what was there")


def _transfer_alone(figures: dict[str, Figures]) -> str:
    if not all(each.values for each in figures.values()):
        return ""
    ours = figures[_OURS].median - figures[_OURS_SMALL].median
    scp = figures[_SCP].median - figures[_SCP_SMALL].median
    small = f"{figures[_OURS_SMALL].median * 1000:.0f} and {figures[_SCP_SMALL].median * 1000:.0f} ms"
    alone = f"{ours * 1000:.0f} against {scp * 1000:.0f} ms, {ours / scp:.2f} times"
    return f"With one byte of outputs they take {small}; the transfer alone is {alone}."
