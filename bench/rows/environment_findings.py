"""Findings over an environment that has PyTorch."""

from __future__ import annotations

import hashlib
from pathlib import Path

import children
import profiles
from children import PROGRAMS, Place
from measuring import Contender, FailedError
from package_places import PLACES, pinned, remove
from peers import install_into
from results import Bar, Row, Table, lines
from session import Session

NAME = "findings"
TITLE = "Findings over an environment with PyTorch"
TOOLS: tuple[str, ...] = ("holdfast",)

TORCH = "torch==2.13.0"
_PROGRAM = "findings_once.py"
_WITH, _WITHOUT, _PROCESS = "reading and judging, with imports", "without imports", "the whole process"
_HOW = """\
An environment of {count} packages and `{torch}`, the CUDA build from the index. The CUDA libraries are separate
packages without findings, so they are left out. Holdfast reads the packages, what PyTorch was built for and the
architectures in its libraries, and judges them for a machine whose GPU is too old. This happens once in a fresh
process, with its imports; only the last line includes the start of Python. Files are in memory."""


def measure(session: Session) -> Row:
    environment = _environment(session)
    place = session.place("findings")
    figures = session.compare(
        [
            Contender(_WITH, lambda: _figures(place, environment)[1]),
            Contender(_WITHOUT, lambda: _figures(place, environment)[0]),
            Contender(_PROCESS, lambda: children.seconds(place, ["python", PROGRAMS / _PROGRAM, environment])),
        ],
        usual=20,
        warm_up=2,
    )
    table = lines({_WITH: Bar(100), _WITHOUT: None, _PROCESS: None}, figures, (_WITH, _WITHOUT, _PROCESS))
    count = len(list(environment.glob("lib/python*/site-packages/*.dist-info"))) - 1
    how = _HOW.format(count=count, torch=TORCH)
    return Row(NAME, TITLE, how, (Table("", "ms", 1000, table[0], table[1:]),))


def profile(session: Session) -> str:
    return profiles.program_profile(session.place("findings-profile"), _PROGRAM, str(_environment(session)))


def _figures(place: Place, environment: Path) -> tuple[float, float]:
    said = children.run(place, ["python", PROGRAMS / _PROGRAM, environment], "packages").out.split()
    return float(said[-2]), float(said[-1])


def _environment(session: Session) -> Path:
    """Made once: PyTorch is some hundred megabytes."""
    wanted = [*pinned(), TORCH]
    folder = PLACES / f"torch-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]}"
    stamp = folder / ".made"
    if not stamp.exists():
        session.say(f"installing {TORCH}, which is large")
        remove(folder)
        problem = install_into(folder, ["--no-deps", *wanted])
        if problem:
            raise FailedError(problem)
        stamp.touch()
    return folder
