"""The table of lies: what a run says about the GPU, compared with what it did."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import profiles
from children import Place
from container_places import engine
from far_boxes import far_boxes
from measuring import FailedError, one
from report import markdown_table
from results import Bar, Line, Row, Table
from session import Session

from kit.accounts import premises
from kit.gpu_cases import CASES, CONTAINED, HONEST, LIES, PRODUCTS, Case
from kit.gpu_table import PATIENCE, Command, Ground, Outcome, play
from kit.nvml import Device, Simulated

NAME = "lies"
TITLE = "The table of lies"
TOOLS: tuple[str, ...] = ("holdfast",)

Outcomes = Mapping[str, Mapping[str, Outcome]]
_HOW = """\
{lies} ways in which a run that should compute on a GPU does not, or not as it should, and {honest} honest runs.
Each is a script on a simulated NVIDIA driver, submitted with `holdfast submit`. Its last lines must say correctly
what it did with the GPU, and why. A lie is *caught* if both are right. An honest run that is *not accused* gets the
correct answer, which is `unknown` if it cannot be known. Seconds are from the end of the script to the verdict, by
the run's journal. A dash is a case that a product cannot have."""


def measure(session: Session) -> Row:
    found = _played(session, CASES)
    tables = tuple(_table(product, found[product]) for product in PRODUCTS)
    how = _HOW.format(lies=len(LIES), honest=len(HONEST))
    return Row(NAME, TITLE, f"{how}\n\n{shown(found)}", tables)


def profile(session: Session) -> str:
    """Of a run that computes on a GPU for two looks."""
    place = session.place("lies-profile")
    gpus = Simulated(place.root / "gpus", [Device()])
    (place.project / "s.py").write_text(next(case for case in HONEST if case.name == "a run of 2 s").text("local"))
    watched = replace(place, variables=(*place.variables, *gpus.environment.items()))
    return profiles.run_timeline(watched, ["submit", "--gpus", "1", "s.py"])


def shown(found: Outcomes) -> str:
    """A line for each case, a column for each product."""
    rows = [
        [case.name, _expected(case), *(_cell(case, product, found[product]) for product in PRODUCTS)] for case in CASES
    ]
    return markdown_table(["", "is", *PRODUCTS], rows, whole=True)


def counted(product: str, found: Mapping[str, Outcome]) -> str:
    """`14 of 14 caught, 8 of 8 not accused`."""
    lies, honest = (_of(product, cases) for cases in (LIES, HONEST))
    caught = sum(found[case.name].fits(case, product) for case in lies)
    spared = sum(not found[case.name].is_accused and not found[case.name].problem for case in honest)
    return f"{caught} of {len(lies)} caught, {spared} of {len(honest)} not accused"


def _table(product: str, found: Mapping[str, Outcome]) -> Table:
    cases = _of(product, CASES)
    right = sum(found[case.name].fits(case, product) for case in cases)
    usual = statistics.median(each.seconds for each in found.values())
    most = max(each.seconds for each in found.values())
    note = f"Seconds from the end of the script to the verdict: {usual:.2f} usually, {most:.2f} at most."
    line = Line(f"right: {counted(product, found)}", one(float(right)), Bar(len(cases), at_most=False))
    return Table(product, "runs", 1, line, note=note)


def _of(product: str, cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if product in case.products]


def _expected(case: Case) -> str:
    said = f"{case.expected.state}, {case.expected.reason}"
    return said if case.contained is None else f"{said}; contained {case.contained.state}, {case.contained.reason}"


def _cell(case: Case, product: str, found: Mapping[str, Outcome]) -> str:
    if product not in case.products:
        return "—"
    outcome = found[case.name]
    if outcome.problem:
        return "NO VERDICT"
    if not outcome.fits(case, product):
        return f"WRONG: {outcome.state}, {outcome.reason}"
    return f"{'caught' if case.is_lie else 'not accused'}, {outcome.seconds:.2f} s"


def _played(session: Session, cases: Sequence[Case]) -> Outcomes:
    if shutil.which("gcc") is None:
        raise FailedError("not installed: gcc")
    with contextlib.ExitStack() as ending:
        daemon = ending.enter_context(engine(hook=True))
        boxes = ending.enter_context(far_boxes())
        folder = ending.enter_context(premises())
        found: dict[str, Mapping[str, Outcome]] = {}
        for product in PRODUCTS:
            session.say(f"{product}: {len(_of(product, cases))} runs")
            place = session.place(f"lies-{product}")
            home = Path(place.environment()["HOLDFAST_HOME"])
            ground = Ground(folder, _command(place), home, daemon if product in CONTAINED else None, boxes)
            found.update(play({product: ground}, cases))
            session.say(f"{product}: {counted(product, found[product])}")
        return found


def _command(place: Place) -> Command:
    def run(words: Sequence[str], project: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["holdfast", *words],
            cwd=project,
            env={**place.environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )

    return run
