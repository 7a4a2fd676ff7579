"""What every engine promises: `Direct` by a fork and as a user unit, and a queue."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.engines import direct, engine
from holdfast.farside.engines.owners import engine_named, owner_of
from holdfast.farside.run import liveness, run_start
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.kernel import lock_holder
from holdfast.farside.system.layout import JOURNAL, Home
from holdfast.farside.system.refusal import Refused
from holdfast.hosts.host import Local
from kit.homes import furnish
from kit.queues import Queue
from kit.waiting import wait_for
from unit.farside.programs import program

SLEEPS = "import time; print('begun', flush=True); time.sleep(1000)"
HELLO = "import os; print('hello', os.environ['TOKEN'])"


class Ground:
    """A host with one engine, asked as the near side does. `run` runs what was started."""

    def __init__(self, home: Path, name: str, run: Callable[[], object]) -> None:
        self.home, self.name, self.run = Home(str(home)), name, run
        self.engine = engine_named(self.home, name)
        self.token = os.urandom(8).hex()  # its own token: a run that is found dead ends all processes with its token
        manifest = b'{"format": 1, "files": []}'
        self.snapshot = hashlib.sha256(manifest).hexdigest()
        place = home / "objects" / self.snapshot[:2]
        place.mkdir(parents=True)
        (place / self.snapshot[2:]).write_bytes(manifest)

    def plan(self, script: str = HELLO) -> dict[str, Any]:
        generation = self.token
        command = {"argv": ["python3", "-c", script], "environment": {"HOLDFAST_GENERATION": generation}}
        return {
            "format": 1,
            "project": "p",
            "run": "r_1",
            "generation": generation,
            "snapshot": self.snapshot,
            "stores": [f"{self.home.path}/objects"],
            "share": f"{self.home.path}/share/p",
            "secrets": ["TOKEN"],
            "limits": {"grace": 5.0, "time": None},
            "environment": None,
            "prepare": True,
            "python": None,
            "command": {**command, "directory": {"join": [{"hole": "work"}]}, "python": "python3"},
            "engine": {"name": self.name},
        }

    def ask(self, operation: str, fields: dict[str, Any], body: bytes = b"") -> Any:
        with Local(Path(self.home.path), os.environ).connect() as connection:
            return connection.request(operation, fields, body)

    def start(self, plan: dict[str, Any]) -> Any:
        return self.ask("start", {"plan": plan}, json.dumps({"TOKEN": "open sesame"}).encode())

    @property
    def folder(self) -> str:
        return self.home.run("p", "r_1")

    def events(self) -> list[dict[str, Any]]:
        return JournalWriter(os.path.join(self.folder, JOURNAL)).events()

    def ended(self) -> dict[str, Any]:
        return wait_for(lambda: next((each for each in self.events() if each["e"] == "ended"), None))

    def until_begun(self) -> None:
        wait_for(lambda: Path(self.folder, "driver_log").read_text() == "begun\n")

    def seen(self) -> engine.EngineLook:
        owner = owner_of(self.folder)
        return self.engine.look([owner])[owner]


@pytest.fixture(params=["fork", "user unit", "queue"])
def ground(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    home = furnish(tmp_path / "home")
    if request.param == "queue":
        queue = Queue(home)
        yield Ground(home, "queue", queue.run)
        queue.close()
        return
    if request.param == "user unit":
        program(tmp_path / "bin" / "systemd-run", 'shift 4\nexec "$@"')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        direct.set_start(Home(str(home)), direct.USER_UNIT)
    made = Ground(home, engine.DIRECT, lambda: None)
    yield made
    if os.path.isdir(made.folder) and direct.is_held(made.folder):
        made.ask("cancel", {"project": "p", "run": "r_1", "grace": 0})
        made.ended()


def test_a_run_is_started_once_and_named_by_its_owner(ground):
    plan = ground.plan()
    assert ground.start(plan)["again"] is False
    assert ground.start(plan)["again"] is True
    owner = owner_of(ground.folder)
    assert (owner.engine, owner.token, bool(owner.handle)) == (ground.name, ground.token, True)
    with pytest.raises(Refused, match="another run"):
        run_start.start(ground.home, dict(plan, generation="cd"), {}, {})
    ground.run()
    assert (ground.ended()["reason"], ground.ended()["code"]) == ("completed", 0)
    assert Path(ground.folder, "driver_log").read_text() == "hello ***\n"
    assert not os.path.exists(os.path.join(ground.folder, "secrets"))
    wait_for(lambda: not liveness.is_alive(ground.folder))


def test_what_runs_is_alive_and_ends_when_it_is_asked_to(ground):
    ground.start(ground.plan(SLEEPS))
    ground.run()
    ground.until_begun()
    assert liveness.is_alive(ground.folder)
    assert ground.seen().state == engine.RUNNING
    answer = ground.ask("cancel", {"project": "p", "run": "r_1", "grace": 1})
    assert answer == {"state": "asked"}, ground.events()
    assert ground.ended()["reason"] == "canceled"
    wait_for(lambda: ground.seen().state == engine.GONE)
    ground.engine.end(owner_of(ground.folder), 1.0)  # gone already is success


def test_one_question_is_enough_for_any_number_of_runs(ground):
    ground.start(ground.plan(SLEEPS))
    ground.run()
    ground.until_begun()
    owner = owner_of(ground.folder)
    unknown = engine.Owner(ground.name, "no such token", "p/r_2")
    assert {each: seen.state for each, seen in ground.engine.look([owner, unknown]).items()} == {
        owner: engine.RUNNING,
        unknown: engine.GONE,
    }


def test_a_run_whose_owners_were_killed_is_found_dead(ground):
    ground.start(ground.plan(SLEEPS))
    ground.run()
    ground.until_begun()
    for byte in (0, 1):
        os.kill(lock_holder(os.path.join(ground.folder, "lock"), byte) or 0, 9)
    wait_for(lambda: not liveness.is_alive(ground.folder))
    liveness.adjudicate(ground.folder)
    assert ground.ended()["reason"] == ("engine-lost" if ground.engine.needs_folder else "supervisor-died")


def test_what_is_given_to_an_engine_says_nothing_of_secrets_and_is_the_same_each_time(ground):
    script = ground.engine.script(ground.plan())
    assert script == ground.engine.script(ground.plan())
    assert bool(script) is ground.engine.needs_folder
    assert "sesame" not in script
