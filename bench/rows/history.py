"""Looking things up among ten thousand runs."""

from __future__ import annotations

from contextlib import ExitStack

import children
import profiles
from children import PROGRAMS, Place, Worker
from measuring import Contender, Figures
from results import Bar, Row, Table, lines
from session import Session
from synthetic_runs import METRIC, THRESHOLD, write_runs

NAME = "history"
TITLE = "History of 10,000 runs"
TOOLS: tuple[str, ...] = ("holdfast", "mlflow")

_NEWEST, _QUERY = "newest", "query"
_COMMANDS = {
    _NEWEST: ["holdfast", "history", "list", "-o", "table"],
    _QUERY: ["holdfast", "history", "list", "--query", f"[?{METRIC} > `{THRESHOLD}`].run_id", "-o", "json"],
}
_HOW = """\
Both have the same {count:,} runs: times, a script, three parameters, two metrics with five points each. Holdfast:
run folders as in `docs/reference/files.md`, and the index made from them. mlflow: its SQLite store, made by mlflow,
filled with the rows that its client writes. "Newest 50" is `history list` and `search_runs(max_results=50)`. The
query asks for the runs with `{metric}` above {threshold} (one in a hundred): JMESPath in Holdfast, a filter in
mlflow. Library calls take turns in two processes that stay warm: `Index.look` and `run_as_dict`, and for the query
the JMESPath search over all of them, against `MlflowClient.search_runs` (the one without pandas). Commands are
whole processes: `holdfast history list` against a Python that imports mlflow and prints what `search_runs` found."""


def measure(session: Session) -> Row:
    count = session.amount(10_000)
    ours, mlflow = _ours(session, "history", count), session.place("history-mlflow", "mlflow")
    tables: list[Table] = []
    if not mlflow.tool.problem:
        session.say("filling mlflow's store")
        children.run(mlflow, ["python", PROGRAMS / "fill_mlflow.py", str(count)])
    with ExitStack() as stack:
        library = [
            stack.enter_context(Worker(ours, "history_holdfast.py")),
            stack.enter_context(Worker(mlflow, "history_mlflow.py")),
        ]
        for work, title in ((_NEWEST, "Newest 50"), (_QUERY, "Metric query")):
            tables.append(_as_library(session, library, work, title))
            tables.append(_as_commands(session, ours, mlflow, work, title))
    how = _HOW.format(count=count, metric=METRIC, threshold=THRESHOLD)
    return Row(NAME, TITLE, how, tuple(tables))


def profile(session: Session) -> str:
    place = _ours(session, "history-profile", session.amount(10_000))
    parts = []
    for command in _COMMANDS.values():
        parts += [profiles.import_times(place, command[1:]), profiles.cpu_profile(place, command[1:])]
    return "\n\n".join(parts)


def _ours(session: Session, name: str, count: int) -> Place:
    place = session.place(name)
    session.say("writing run folders")
    write_runs(place.project, count)
    children.run(place, ["holdfast", "project", "trust", "--yes"])
    children.run(place, ["holdfast", "history", "rebuild"], f"{count} runs")
    return place


def _as_library(session: Session, workers: list[Worker], work: str, title: str) -> Table:
    ours, mlflow = workers
    contenders = [
        Contender("holdfast", lambda: ours.ask(work)),
        Contender("mlflow", lambda: mlflow.ask(work)),
    ]
    bars: dict[str, Bar | None] = {"holdfast": None, "mlflow": Bar(0.3)}
    return _table(f"{title}, library call", bars, session.compare(contenders, usual=15, warm_up=2))


def _as_commands(session: Session, ours: Place, mlflow: Place, work: str, title: str) -> Table:
    process = ["python", str(PROGRAMS / "search_mlflow.py"), work]
    contenders = [
        Contender("`holdfast history list`", lambda: children.seconds(ours, _COMMANDS[work], "bench_")),
        Contender("a Python with mlflow", lambda: children.seconds(mlflow, process, "run")),
    ]
    bars = {contenders[0].name: None, contenders[1].name: Bar(0.3)}
    return _table(f"{title}, command", bars, session.compare(contenders, usual=7))


def _table(title: str, bars: dict[str, Bar | None], figures: dict[str, Figures]) -> Table:
    first, *others = lines(bars, figures)
    return Table(title, "ms", 1000, first, tuple(others))
