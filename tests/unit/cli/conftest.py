"""A project with a made-up run, for commands that show local records."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli.main import main
from holdfast.history.run_folder import RunFolders
from holdfast.model import Submission
from kit.projects import own_state

BEGIN = 1_521_077_190.506


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A terminal that records its output."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Recorded:
    """The runs of a project, and a way to add one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = RunFolders(own_state(root))

    def add(
        self,
        environment: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        metrics: Sequence[str] = (),
        others: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> str:
        run_id = self.folders.reserve("iris", BEGIN)
        submission = Submission(run_id, 1, "p", "iris", "train.py", (), "local", "local", "local", "a" * 64, BEGIN, "g")
        submission = Submission(**{**vars(submission), "properties": properties or {}})
        self.folders.commit(run_id, submission, {"format": 1}, {"run": {"Framework": "Python"}})
        folder = self.folders.path(run_id)
        events: list[Mapping[str, Any]] = [
            {"t": BEGIN + 1, "e": "created"},
            {"t": BEGIN + 2, "e": "environment", **(environment or {})},
            {"t": BEGIN + 3, "e": "started", "pid": 7, "argv": []},
            {
                "t": BEGIN + 4,
                "e": "files",
                "outputs": [],
                "others": [[each, 1] for each in others],
                "others_count": len(others),
            },
            {"t": BEGIN + 5, "e": "ended", "reason": "exit-code", "code": 3, "signal": None, "detail": ""},
        ]
        (folder / "journal.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
        (folder / "collected.json").write_text("{}")
        for path, text in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "metrics").mkdir(exist_ok=True)
        lines = [json.dumps({"t": BEGIN, "n": name, "v": 0.5, "s": None}) + "\n" for name in metrics]
        (folder / "metrics" / "7-aa.jsonl").write_text("".join(lines))
        return run_id

    def insert(self, run_id: str, *events: Mapping[str, Any], at: int = -1) -> None:
        """Puts events into the run's journal, by default before its last one."""
        file = self.folders.path(run_id) / "journal.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        lines[at:at] = [json.dumps({"t": BEGIN + 4, **event}) + "\n" for event in events]
        file.write_text("".join(lines))

    def going_on(self, **submission: str) -> str:
        """A run whose script has started and not ended, according to the local record."""
        run_id = self.add()
        folder = self.folders.path(run_id)
        journal, record = folder / "journal.jsonl", folder / "submission.json"
        journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:3]))
        record.write_text(json.dumps({**json.loads(record.read_text()), **submission}))
        (folder / "collected.json").unlink()
        return run_id


@pytest.fixture
def configure(tmp_path: Path) -> Callable[[str, str], Path]:
    """`configure("gpu1.compute", "type: local\\n")` writes a file of the project's configuration."""

    def write(name: str, text: str) -> Path:
        (tmp_path / "aml_config").mkdir(exist_ok=True)
        (tmp_path / "aml_config" / name).write_text(text)
        return tmp_path / "aml_config" / name

    return write


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


@pytest.fixture
def command(tmp_path, monkeypatch, capfd) -> Callable[..., Outcome]:
    """`command("history", "list")` runs it in the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)  # finding a Python starts no shim of this machine

    def run(*words: str) -> Outcome:
        capfd.readouterr()
        return Outcome(main(list(words)), *capfd.readouterr())

    return run
