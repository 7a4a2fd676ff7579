"""What an installation takes."""

from __future__ import annotations

from measuring import Figures, one
from peers import OURS, measure_size
from results import Line, Row, Table
from session import Session

NAME = "size"
TITLE = "Installed size and number of packages"
TOOLS: tuple[str, ...] = (OURS, "submitit", "mlflow", "trackio", "dstack", "ray")

_HOW = """\
Each tool is installed alone with uv into an empty environment. The tables show its size on disk without compiled
bytecode, and the number of distributions, including itself. Most of Holdfast's size is uv, which builds the
environments of runs."""


def measure(session: Session) -> Row:
    tools = {name: session.tools[name] for name in TOOLS}
    sizes = {name: measure_size(tool.folder) for name, tool in tools.items() if not tool.problem}
    missing = {name: Figures((), tool.problem) for name, tool in tools.items() if tool.problem}
    disk = {**missing, **{name: one(size.bytes) for name, size in sizes.items()}}
    packages = {**missing, **{name: one(size.packages) for name, size in sizes.items()}}
    return Row(NAME, TITLE, _HOW, (_table("On disk", "MB", 1e-6, disk), _table("Packages", "packages", 1, packages)))


def profile(session: Session) -> str:
    folder = next(session.tools[OURS].folder.glob("lib/python*/site-packages"))
    found = sorted(((measure_size(each).bytes, each.name) for each in folder.iterdir()), reverse=True)
    parts = [(measure_size(session.tools[OURS].programs).bytes, "bin"), *found]
    return "\n".join(f"{size / 1e6:8.2f} MB  {name}" for size, name in sorted(parts, reverse=True)[:15])


def _table(title: str, unit: str, scale: float, figures: dict[str, Figures]) -> Table:
    others = tuple(Line(name, figures[name]) for name in TOOLS if name != OURS)
    return Table(title, unit, scale, Line(OURS, figures[OURS]), others)
