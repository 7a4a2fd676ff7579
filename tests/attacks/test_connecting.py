"""A project says where its targets are: only commands that docs/security.md names connect there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.project.folder import ensure_identity
from kit.projects import project_at
from unit.cli.conftest import Recorded


class Reached(NamedTuple):
    """A project with a target of somebody else's choice. `ended` and `going` are the user's own runs there."""

    root: Path
    log: Path
    ended: str
    going: str

    def typed(self, words: Sequence[str]) -> list[str]:
        return [{"ENDED": self.ended, "GOING": self.going}.get(each, each) for each in words]


@pytest.fixture
def reached(tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Reached:
    root = tmp_path / "own"
    root.mkdir()
    monkeypatch.chdir(root)
    log, ssh = tmp_path / "reached", tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("HOLDFAST_SSH", str(ssh))
    (root / "aml_config").mkdir()
    (root / "aml_config" / "evil.compute").write_text("type: remote\naddress: evil.example.com\nusername: me\n")
    (root / "aml_config" / "evil.runconfig").write_text("Target: evil\nFramework: Python\n")
    (root / "train.py").write_text("print(1)\n")
    ensure_identity(project_at(root))
    recorded = Recorded(root)
    runs = []
    for is_ended in (True, False):
        run = recorded.add(files={"driver_log": "hi\n"})
        folder = root / ".holdfast" / "runs" / run
        record = json.loads((folder / "submission.json").read_text())
        (folder / "submission.json").write_text(json.dumps({**record, "target": "evil", "target_type": "remote"}))
        if not is_ended:
            (folder / "collected.json").unlink()
            journal = folder / "journal.jsonl"
            journal.write_text("".join(journal.read_text().splitlines(True)[:3]))
        runs.append(run)
    return Reached(root, log, *runs)


NOWHERE = (
    ("--help",),
    ("submit", "--help"),
    ("completion", "bash"),
    ("check",),
    ("project", "sample", "list"),
    ("project", "restore", "-r", "ENDED"),
    ("project", "trust"),
    ("computetarget", "list"),
    ("runconfiguration", "list"),
    ("submit", "--dry-run", "-c", "evil", "train.py"),
    ("environment", "list"),
    ("environment", "check"),
    ("history", "list", "--no-refresh"),
    ("history", "rebuild"),
    ("history", "info", "-r", "ENDED"),
    ("history", "compare", "ENDED", "ENDED"),
    ("history", "download", "-r", "ENDED", "-d", "out"),
    ("history", "promote", "-r", "GOING", "-ap", "driver_log", "-n", "log"),
    ("asset", "download", "-l", "assets/log.link", "-d", "log"),
    ("status", "-r", "ENDED"),
    ("logs", "-r", "ENDED"),
    ("cancel", "-r", "ENDED"),
    ("experiment", "diagnostics", "-r", "GOING"),
)
WHERE_A_RUN_GOES_ON = (
    ("history", "list"),
    ("history", "last"),
    ("history", "info", "-r", "GOING"),
    ("history", "compare", "ENDED", "GOING"),
    ("history", "download", "-r", "GOING", "-d", "out"),
    ("status",),
    ("logs",),
    ("logs", "-f"),
    ("cancel",),
    ("experiment", "stacks", "-r", "GOING"),
    ("experiment", "forward", "8080", "-r", "GOING"),
    ("experiment", "clean", "--all"),
)
BY_THE_RUN_CONFIGURATION_LOCAL = (
    ("submit", "train.py"),
    ("environment", "check"),
)
TO_THE_TARGET = (
    ("submit", "-c", "evil", "train.py"),
    ("experiment", "shell", "-c", "evil"),
    ("experiment", "clean", "-r", "ENDED"),
    ("history", "import", "-t", "evil"),
    ("computetarget", "show", "evil"),
    ("computetarget", "check", "evil"),
    ("computetarget", "gpus", "evil"),
    ("computetarget", "detach", "evil", "--purge", "--yes", "--force"),
    ("environment", "list", "-t", "evil"),
    ("environment", "show", "x", "-t", "evil"),
    ("environment", "remove", "x", "-t", "evil"),
    ("environment", "shell", "-t", "evil", "x"),
    ("environment", "check", "-c", "evil"),
)


@pytest.mark.parametrize("words", NOWHERE, ids=" ".join)
def test_these_connect_to_nothing_that_the_project_names(words, reached, command):
    command(*reached.typed(words))
    assert not reached.log.exists()


@pytest.mark.parametrize("words", (*WHERE_A_RUN_GOES_ON, *TO_THE_TARGET), ids=" ".join)
def test_these_connect_to_the_address_that_the_file_has_now(words, reached, command):
    command(*reached.typed(words))
    assert "evil.example.com" in reached.log.read_text()


@pytest.mark.parametrize("words", BY_THE_RUN_CONFIGURATION_LOCAL, ids=" ".join)
def test_what_is_called_local_is_where_the_project_says(words, reached, command):
    (reached.root / "aml_config" / "evil.runconfig").rename(reached.root / "aml_config" / "local.runconfig")
    command(*words)
    assert "evil.example.com" in reached.log.read_text()


@pytest.mark.parametrize("words", WHERE_A_RUN_GOES_ON, ids=" ".join)
def test_without_a_run_that_goes_on_these_connect_to_nothing(words, reached, command):
    """As in a fresh clone: `.compute` files alone lead nowhere."""
    for each in (reached.root / ".holdfast" / "runs").iterdir():
        shutil.rmtree(each)
    command("history", "rebuild")
    command(*reached.typed(words))
    assert not reached.log.exists()
