"""Laptops and boxes for tests that count connections and look at records: a box is this machine with another home and
identity, and has a real far side. `boxes`, `new_laptop` and `laptop` are fixtures."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.containers import Bare
from holdfast.errors import HostError
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Local
from holdfast.plan import EnginePlan
from holdfast.project.folder import Project
from holdfast.workbench.reach import events, run_hosts
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import Product
from holdfast.workbench.records import refresh
from holdfast.workbench.records.refresh import Looking
from holdfast.workbench.submitting import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.homes import furnish
from kit.projects import project_at

SCRIPT = """
import os, sys, time
print("first line", flush=True)
while not os.path.exists(os.environ["GATE"]):
    time.sleep(0.01)
open("outputs/result", "w").write("made on " + sys.argv[1])
"""
NOON = 1_800_000_000.0


class Box(Local):
    """A machine that says that it is `machine`. `trouble` is raised instead of connecting, `before` is called first,
    and a new connection goes through `link`."""

    is_here = False

    def __init__(self, name: str, home: Path, machine: str = "") -> None:
        environment = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "HOME": str(home)}
        identity = {"HOLDFAST_MACHINE_ID": machine or name}
        super().__init__(home, {**environment, **identity, "GATE": str(home / "gate")})
        self.name, self.folder = name, home
        self.link: Callable[[Connection], Connection] = lambda connection: connection
        self.connections: list[bool] = []
        self.trouble: HostError | None = None
        self.before: Callable[[], None] = lambda: None

    def connect(self, may_ask: bool = True) -> Connection:
        self.connections.append(may_ask)
        self.before()
        if self.trouble is not None:
            raise self.trouble
        return self.link(super().connect())

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


class Behind:
    """One name that leads to several machines: the first connection to the first machine, each later one to the next,
    up to the last."""

    is_here = False

    def __init__(self, name: str, *boxes: Box) -> None:
        self.name, self.boxes = name, list(boxes)

    @property
    def connections(self) -> list[bool]:
        return [each for box in self.boxes for each in box.connections]

    def connect(self, may_ask: bool = True) -> Connection:
        return (self.boxes.pop(0) if len(self.boxes) > 1 else self.boxes[0]).connect(may_ask)

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        return list(words)


class Laptop:
    """One copy of a project, and the boxes that it can reach."""

    def __init__(self, root: Path, boxes: dict[str, Box], home: Path) -> None:
        (root / "aml_config").mkdir(parents=True)
        for name in boxes:
            (root / "aml_config" / f"{name}.compute").write_text(f"type: remote\naddress: {name}\n")
        (root / "train.py").write_text(SCRIPT)
        self.root, self.boxes = root, boxes
        self.context = Context(home, dict(os.environ), root, home, now=lambda: self.time)
        self.time = NOON
        self.folders = RunFolders(root / ".holdfast")

    @property
    def project(self) -> Project:
        return project_at(self.root)

    def start(self, target: str, *arguments: str) -> str:
        request = SubmitRequest("train.py", arguments or (target,), None, target)
        happened = list(submit.submit(self.project, request, self.context, wait=False))
        self.boxes[target].connections.clear()
        return next(each.run_id for each in happened if isinstance(each, events.RunCreated))

    def look(self, **how: Any) -> list[events.Event]:
        return list(refresh.refresh(self.project, self.context, Looking(**how)))

    def look_until_ended(self, *run_ids: str) -> None:
        deadline = time.monotonic() + 60
        while not all(self.folders.is_collected(each) for each in run_ids):
            assert time.monotonic() < deadline
            self.look()

    def read(self, run_id: str) -> Any:
        return read_run(self.folders, run_id)


def ended(happened: Iterable[events.Event]) -> Any:
    """The record that comes last."""
    *_, last = happened
    assert isinstance(last, events.Ended), last
    return last.run


def removed(happened: Iterable[events.Event]) -> list[events.Removed]:
    """What was removed or kept; asserts that nothing else happened."""
    found = list(happened)
    told = [each for each in found if isinstance(each, events.Removed)]
    assert told == found
    return told


@pytest.fixture
def boxes(tmp_path: Path) -> Iterator[dict[str, Box]]:
    made = {name: Box(name, tmp_path / "boxes" / name) for name in ("gpu1", "gpu2", "gpu3")}
    originals = tuple(made.values())
    for box in originals:
        furnish(box.folder, has_uv=False)
    yield made
    for box in originals:
        box.open_gate()


@pytest.fixture
def new_laptop(
    tmp_path: Path, boxes: dict[str, Box], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str | None], Laptop]:
    def product(target: Any, context: Context, *_: Any) -> Product:
        return Product(boxes[target.address], EnginePlan(), Bare())

    monkeypatch.setattr(submit, "product_of", product)
    monkeypatch.setattr(run_hosts, "host_of", lambda target, context: boxes[target.address])
    # A watcher is told which machine takes long: on a busy machine, at any time.
    monkeypatch.setattr(refresh, "TICK", 600.0)

    def make(name: str, identity: str | None = "ab" * 16) -> Laptop:
        laptop = Laptop(tmp_path / name / "iris", boxes, tmp_path / name / "home")
        if identity is not None:
            (laptop.root / "aml_config" / "project.json").write_text(json.dumps({"format": 1, "id": identity}))
        return laptop

    return make


@pytest.fixture
def laptop(new_laptop: Callable[..., Laptop]) -> Laptop:
    return new_laptop("laptop")
