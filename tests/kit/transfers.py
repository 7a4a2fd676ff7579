"""A project here and a host behind a relay, which counts and cuts, for suites about transfers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.containers import Bare
from holdfast.farside.system.working_tree import tree_of
from holdfast.hosts.connection import Connection
from holdfast.model import Run
from holdfast.plan import EnginePlan
from holdfast.project.folder import Project
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import Selection, take_snapshot
from holdfast.workbench.reach import events, link, run_hosts
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import Product
from holdfast.workbench.submitting import submit as submitting
from holdfast.workbench.submitting.send import Sender
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.homes import furnish
from kit.projects import own_state, project_at
from kit.relay import Relayed


@dataclass(frozen=True)
class Bench:
    """A project, and a host behind a relay."""

    root: Path
    host: Relayed
    context: Context

    @property
    def project(self) -> Project:
        return project_at(self.root)

    @property
    def store(self) -> ObjectStore:
        return ObjectStore(own_state(self.root) / "objects")

    @property
    def far_objects(self) -> Path:
        return self.context.home / "objects"

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def snapshot(self) -> str:
        return take_snapshot(self.root, own_state(self.root), lambda files, size: None, Selection({})).digest

    def send(self, connection: Connection, snapshot: str) -> Iterator[events.Sending]:
        sender = Sender(connection, self.store, snapshot, None)
        sender.announce()
        yield from sender.complete()
        sender.confirm()

    def submit(self, script: str = "t.py", **asked: Any) -> Iterator[events.Event]:
        return submitting.submit(self.project, SubmitRequest(script, **asked), self.context)

    def run(self, script: str = "t.py", **asked: Any) -> Run:
        ended = list(self.submit(script, **asked))[-1]
        assert isinstance(ended, events.Ended)
        return ended.run

    def near(self, run: Run) -> Path:
        return self.root / ".holdfast" / "runs" / run.run_id

    def far(self, run: Run) -> Path:
        return next((self.context.home / "runs").glob(f"*/{run.run_id}"))

    def there(self, run: Run) -> Path:
        """The project's top, as the script has it."""
        return Path(tree_of(str(self.far(run))).project)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    root = tmp_path / "project"
    root.mkdir()
    environment = {**os.environ, "PATH": os.path.dirname(sys.executable)}
    host = Relayed(tmp_path / "home", environment, tmp_path / "reports")
    monkeypatch.setattr(submitting, "product_of", lambda *_: Product(host, EnginePlan(), Bare()))
    monkeypatch.setattr(run_hosts, "host_of", lambda target, context: host)
    monkeypatch.setattr(link, "TRIES", (0.01, 0.01, 0.02))
    made = Bench(root, host, Context(furnish(tmp_path / "home", has_uv=False), environment, root, tmp_path))
    made.write("t.py", "print('ran')\n")
    return made
