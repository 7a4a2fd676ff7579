"""Which machine a far side is on, and what it says about runs of another machine that shares its home."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.farside import agent
from holdfast.farside.machine import identity
from holdfast.farside.operations import storage
from holdfast.farside.run import liveness
from holdfast.farside.system import kernel
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import JOURNAL, Home
from holdfast.farside.system.refusal import Refused


def on_machine(monkeypatch: pytest.MonkeyPatch, system: str, name: str, boot: str) -> None:
    monkeypatch.setenv("HOLDFAST_MACHINE_ID", system)
    monkeypatch.setenv("HOLDFAST_BOOT_ID", boot)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", name, "6.1", "#1", "x86_64")))


def run_in(home: Home, **created: object) -> str:
    """A run that has begun, without a visible guardian."""
    folder = home.run("project", "run_1")
    os.makedirs(folder)
    JournalWriter(os.path.join(folder, JOURNAL)).append(
        "created", run="run_1", project="project", generation="ab", **created
    )
    return folder


def reason_of(folder: str) -> str | None:
    ended = JournalWriter(os.path.join(folder, JOURNAL)).ended()
    return None if ended is None else str(ended["reason"])


def test_the_systems_own_id_is_not_shown(home, monkeypatch):
    on_machine(monkeypatch, "secret", "node1", "boot1")
    said = identity.machine_id(home)
    assert len(said) == 32
    assert "secret" not in said
    assert said == identity.machine_id(Home(home.path + "-other"))


def test_machines_made_from_one_image_are_told_apart_by_their_names(home, monkeypatch):
    on_machine(monkeypatch, "same", "node1", "boot1")
    first = identity.machine_id(home)
    on_machine(monkeypatch, "same", "node2", "boot2")
    assert identity.machine_id(home) != first


def test_where_the_system_has_no_id_one_is_made_and_kept(home, monkeypatch, tmp_path):
    monkeypatch.setattr(identity, "SYSTEM", (str(tmp_path / "nothing"),))
    monkeypatch.delenv("HOLDFAST_MACHINE_ID", raising=False)
    first = identity.machine_id(home)
    assert first == identity.machine_id(home) != ""
    assert identity.machine_id(Home(str(tmp_path))) != first
    assert [name for name in os.listdir(home.path) if name.startswith("machine")] == ["machine"]
    assert identity.machine_id(Home(str(tmp_path / "not there"))) == "", "a folder that cannot be written is no error"


def test_a_folder_is_the_same_whatever_link_leads_to_it(home, tmp_path):
    (tmp_path / "link").symlink_to(home.path)
    assert identity.place(Home(str(tmp_path / "link"))) == identity.place(home)


@pytest.mark.parametrize("has_id", [True, False], ids=["with the machine's id", "without one"])
def test_a_run_of_another_machine_that_shares_the_home_is_left_alone(home, monkeypatch, has_id):
    on_machine(monkeypatch, "one", "node1", "boot1")
    machine = {"machine": identity.machine_id(home)} if has_id else {}
    folder = run_in(home, boot=kernel.boot_id(), host="node1", **machine)
    on_machine(monkeypatch, "two", "node2", "boot2")
    liveness.adjudicate(folder)
    assert reason_of(folder) is None
    assert liveness.is_alive(folder)
    with pytest.raises(Refused, match="still alive"):
        storage.remove(home, {"project": "project", "run": "run_1"})
    on_machine(monkeypatch, "one", "node1", "boot after a restart")
    liveness.adjudicate(folder)
    assert reason_of(folder) == "host-rebooted"


def test_a_run_of_another_machine_that_has_ended_is_like_any_other(home, monkeypatch):
    on_machine(monkeypatch, "two", "node2", "boot2")
    folder = run_in(home, boot="boot1", host="node1", machine="another")
    JournalWriter(os.path.join(folder, JOURNAL)).append("ended", reason="completed", code=0)
    assert not liveness.is_alive(folder)
    assert storage.remove(home, {"project": "project", "run": "run_1"})["removed"] > 0


def test_a_run_of_another_machine_is_not_canceled_here(home, monkeypatch):
    on_machine(monkeypatch, "two", "node2", "boot2")
    folder = run_in(home, boot="boot1", host="node1", machine="another")
    said = answer(home, {"op": "cancel", "project": "project", "run": "run_1"})
    assert said["error"]["kind"] == "elsewhere"
    assert said["error"]["message"] == "The run `run_1` is on `node1`, and `node2` answers."
    assert not os.path.exists(os.path.join(folder, "cancel"))


def test_a_start_that_is_meant_for_another_place_is_refused(home, tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "start_or_give_up", lambda *_: True)
    plan = {"project": "project", "run": "run_1", "generation": "ab", "snapshot": None}
    machine, folder = identity.place(home)
    for place in (["another", folder], [machine, str(tmp_path)]):
        said = answer(home, {"op": "start", "plan": plan, "place": place})
        assert said["error"]["kind"] == "elsewhere"
    assert answer(home, {"op": "start", "plan": plan, "place": [machine, folder]})["ok"] == {
        "again": False,
        "queued": None,
    }


def answer(home: Home, request: dict[str, object]) -> dict[str, Any]:
    said: list[dict[str, Any]] = []

    class Heard(agent.Agent):
        def _reply(self, message: dict[str, Any], body: bytes = b"", is_checked: bool = True) -> None:
            said.append(json.loads(json.dumps(message)))

    Heard(home, None)._handle({"id": 1, **request}, b"")
    return said[0]
