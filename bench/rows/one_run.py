"""A one-line script, from the command to its end."""

from __future__ import annotations

import children
import profiles
from children import PROGRAMS, Place
from measuring import Contender, Figures
from results import Bar, Row, Table, lines
from session import Session

NAME = "one-run"
TITLE = "A one-line script, from submit to its end"
TOOLS: tuple[str, ...] = ("holdfast", "submitit", "mlflow")

_HOLDFAST, _SUBMITIT, _MLFLOW, _PLAIN = "`holdfast submit s.py`", "submitit local", "`mlflow run`", "`python s.py`"
_MLPROJECT = 'name: bench\nentry_points:\n  main:\n    command: "python s.py"\n'
_HOW = """\
The script prints one word, and the output is checked. submitit: a program that submits `print` to a
`LocalExecutor` and waits for the result. mlflow: `mlflow run --env-manager local .` in a folder with an
`MLproject` file and its usual SQLite store. Each is a whole process, from its start to its exit."""


def measure(session: Session) -> Row:
    ours, plain = _with_script(session.place("one-run")), _with_script(session.place("one-run-plain"))
    mlflow = _with_script(session.place("one-run-mlflow", "mlflow"))
    (mlflow.project / "MLproject").write_text(_MLPROJECT)
    submitit = session.place("one-run-submitit", "submitit")
    figures = session.compare(
        [
            Contender(_HOLDFAST, lambda: children.seconds(ours, ["holdfast", "submit", "s.py"], "hi")),
            Contender(_SUBMITIT, lambda: children.seconds(submitit, ["python", PROGRAMS / "submitit_one.py"], "hi")),
            Contender(_MLFLOW, lambda: children.seconds(mlflow, _mlflow_command(), "hi")),
            Contender(_PLAIN, lambda: children.seconds(plain, ["python", "s.py"], "hi")),
        ],
        usual=11,
    )
    first, *others = lines({_HOLDFAST: None, _SUBMITIT: Bar(0.4), _MLFLOW: Bar(0.06), _PLAIN: None}, figures)
    return Row(NAME, TITLE, _HOW, (Table("", "ms", 1000, first, tuple(others), _over_plain(figures)),))


def profile(session: Session) -> str:
    place = _with_script(session.place("one-run-profile"))
    command = ["submit", "s.py"]
    children.run(place, ["holdfast", *command])
    return "\n\n".join(
        [
            profiles.run_timeline(place, command),
            profiles.import_times(place, command),
            profiles.cpu_profile(place, command),
        ]
    )


def _with_script(place: Place) -> Place:
    (place.project / "s.py").write_text('print("hi")\n')
    return place


def _mlflow_command() -> list[str]:
    return ["mlflow", "run", "--env-manager", "local", "."]


def _over_plain(figures: dict[str, Figures]) -> str:
    plain = figures[_PLAIN]
    if not plain.values:
        return ""
    over = [
        f"{name} {(each.median - plain.median) * 1000:.0f} ms"
        for name, each in figures.items()
        if name != _PLAIN and each.values
    ]
    return "Over plain Python: " + ", ".join(over) + "."
