"""Made-up runs: `archive` writes run folders as submitting and following do, `history` shows them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli.main import main
from holdfast.history.run_folder import RunFolders
from holdfast.model import Submission
from kit.projects import own_state

BEGIN = 1_521_077_190.506
COMPLETED: tuple[Mapping[str, Any], ...] = (
    {"t": BEGIN + 1, "e": "created", "format": 1, "host": "bench", "user": "ada"},
    {"t": BEGIN + 2, "e": "phase", "name": "files", "text": "writing the snapshot's files"},
    {"t": BEGIN + 3, "e": "environment", "id": "env-1", "packages": ["numpy==1.26.4", "torch==2.1.0"]},
    {"t": BEGIN + 4, "e": "started", "pid": 7, "argv": ["python", "train.py"]},
    {"t": BEGIN + 8.892389, "e": "exited", "code": 0},
    {"t": BEGIN + 8.892389, "e": "swept", "processes": [[9, "loader", "SIGTERM"]], "count": 1},
    {"t": BEGIN + 8.892389, "e": "files", "outputs": [["outputs/model.pkl", 5]]}
    | {"others": [["scratch.bin", 12]], "others_count": 1},
    {"t": BEGIN + 8.892389, "e": "ended", "reason": "completed", "code": 0, "signal": None, "detail": ""},
)
FAILED = (
    *COMPLETED[:4],
    {"t": BEGIN + 6, "e": "ended", "reason": "exit-code", "code": 3, "signal": None, "detail": ""},
)
RUNNING = COMPLETED[:4]


class Archive:
    """The `.holdfast` of a project, and a way to put runs into it."""

    completed, failed, running = COMPLETED, FAILED, RUNNING

    def __init__(self, state: Path) -> None:
        self.state = state
        self.folders = RunFolders(state)

    def add(
        self,
        journal: Sequence[Mapping[str, Any]] = COMPLETED,
        metrics: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        run_id = self.folders.reserve("iris", changes.get("created", BEGIN))
        changes = {"created": int(run_id.rpartition("_")[2]) / 1000, **changes}
        self.folders.commit(run_id, replace(SUBMISSION, run_id=run_id, **changes), {"format": 1}, configuration or {})
        self.write_journal(run_id, journal)
        self.write_metrics(run_id, metrics or {})
        return run_id

    def write_journal(self, run_id: str, journal: Sequence[Mapping[str, Any]]) -> None:
        if journal:
            data = b"".join(json.dumps(event).encode() + b"\n" for event in journal)
            (self.folders.path(run_id) / "journal.jsonl").write_bytes(data)
            if journal[-1]["e"] == "ended":
                (self.folders.path(run_id) / "collected.json").write_text("{}")

    def write_metrics(self, run_id: str, metrics: Mapping[str, Any]) -> None:
        folder = self.folders.path(run_id) / "metrics"
        folder.mkdir(exist_ok=True)
        lines = [{"t": BEGIN + 5, "n": name, "v": value, "s": None} for name, value in metrics.items()]
        (folder / "7-aa.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


SUBMISSION = Submission(
    *("iris_1521077190506", 1, "p-1", "iris", "train.py", ("--rate", "0.1"), "local", "local", "local", "a" * 64),
    *(BEGIN, "g-1"),
)


@pytest.fixture
def submission() -> Submission:
    return SUBMISSION


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / ".holdfast")


@pytest.fixture(scope="session")
def made_archive() -> Callable[[Path], Archive]:
    """`made_archive(folder)`, for tests that need several of them."""
    return Archive


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def own(tmp_path: Path) -> None:
    """The `.holdfast` of the archive is one that this account made."""
    own_state(tmp_path)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def history(
    own: None, in_utc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """`history("list")` runs `holdfast history list` in the project, `history("asset", …)` runs `holdfast asset …`."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Outcome:
        capfd.readouterr()
        code = main(["asset", *words[1:]] if words[0] == "asset" else ["history", *words])
        return Outcome(code, *capfd.readouterr())

    return run
