"""Runs and strangers are told apart, as far as this machine allows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.registry import LeaseHolder, LeaseState, Ticket
from holdfast.farside.gpu.occupants import occupant
from holdfast.farside.machine import driver_states, gpus
from holdfast.farside.operations import gpu_inventory
from holdfast.farside.operations.gpu_inventory import answer
from kit.waiting import wait_for


@pytest.fixture
def of_a_run() -> Iterator[int]:
    """A process whose parent has a run's variables, and which has cleared them."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], env={})"
    environment = {**os.environ, "HOLDFAST_RUN_ID": "mine_7", "HOLDFAST_PROJECT": "cats"}
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        yield wait_for(lambda: children(process.pid))[0]
        process.communicate(b"\n")


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


def process(pid: int, instance: int | None = None, kind: str = "compute") -> dict[str, Any]:
    return {"pid": pid, "memory": 5, "kind": kind, "instance": instance}


def state(taken: dict[str, LeaseHolder], *tickets: Ticket) -> LeaseState:
    return LeaseState(taken, tickets)


def test_own_runs_others_runs_and_strangers_are_told_apart(report_of, of_a_run):
    me = os.getuid()
    report = report_of({"processes": [process(of_a_run), process(1)]}, {"processes": [process(1), process(2**22 + 9)]})
    first, second = (each["uuid"] for each in report["devices"])
    root = occupant(1)
    assert root.uid is not None
    found = answer(
        report,
        state({first: LeaseHolder(me, "mine_7", of_a_run), second: LeaseHolder(root.uid, "theirs_1", 2**22 + 6)}),
    )
    json.dumps(found)
    mine, stranger = found["devices"][0]["processes"]
    assert (mine["whose"], mine["run"], mine["project"]) == ("mine", "mine_7", "cats")
    if me != root.uid:
        assert (stranger["whose"], stranger["run"]) == ("stranger", None)
    theirs, unseen = found["devices"][1]["processes"]
    assert (theirs["whose"], theirs["run"]) == ("run" if me != root.uid else "mine", "theirs_1")
    assert (unseen["whose"], unseen["uid"], unseen["user"], unseen["command"]) == ("stranger", None, None, None)
    leased = found["devices"][0]["lease"]
    assert (leased["uid"], leased["run"], leased["pid"]) == (me, "mine_7", of_a_run)
    assert found["devices"][1]["lease"]["pid"] is None  # no process of the account that has the lock


def test_a_process_on_a_device_without_a_lease_is_a_stranger(report_of):
    found = answer(report_of({"processes": [process(1)]}, {"processes": None}), state({}))
    (row,) = found["devices"][0]["processes"]
    assert (row["whose"], row["run"], row["user"]) == ("stranger", None, occupant(1).user)
    assert found["devices"][1]["processes"] is None
    assert found["devices"][0]["lease"] is None


def test_a_lease_whose_holder_did_not_say_its_name_is_still_one(report_of):
    report = report_of({})
    uuid = report["devices"][0]["uuid"]
    found = answer(report, state({uuid: LeaseHolder(None, "", None)}))
    assert found["devices"][0]["lease"] == {"uid": None, "user": "", "run": "", "pid": None}


def test_instances_have_leases_and_processes_of_their_own(report_of):
    first, second = {"uuid": "MIG-1", "gpu_instance": 3}, {"uuid": "MIG-2", "gpu_instance": 4}
    memory = dict.fromkeys(("memory_total", "memory_free"))
    parts = [{"index": at, "name": "", **memory, **each} for at, each in enumerate((first, second))]
    mine = occupant(os.getpid())
    report = report_of({"mig": True, "instances": parts, "processes": [process(mine.pid, instance=3)]})
    found = answer(report, state({"MIG-1": LeaseHolder(os.getuid(), "mine_1", 5)}))
    (device,) = found["devices"]
    assert [bool(each["lease"]) for each in device["instances"]] == [True, False]
    assert [each["is_used"] for each in device["instances"]] == [True, False]
    assert device["processes"][0]["run"] == "mine_1"


def test_the_queue_has_those_who_wait_for_devices_of_this_machine(report_of):
    report = report_of({})
    uuid = report["devices"][0]["uuid"]
    me = os.getuid(), occupant(os.getpid()).user
    now = registry.now()
    waiting = Ticket(now, os.getpid(), 2, frozenset([uuid, "GPU-elsewhere"]), registry._namespace(), me[0])
    contained = waiting._replace(namespace=5, uid=None, time=now - 3 * 10**9)
    named = contained._replace(uid=me[0], run="iris_1")
    found = answer(report, state({}, waiting, contained, named, Ticket(1, 1, 1, frozenset(["GPU-elsewhere"]))))
    row, unknown, of_mine = found["queue"]
    assert (of_mine["uid"], of_mine["user"], of_mine["run"]) == (*me, "iris_1")
    assert (unknown["pid"], unknown["uid"], unknown["user"]) == (os.getpid(), None, None)
    assert (row["gpus"], row["pid"], row["uid"], row["devices"]) == (2, os.getpid(), os.getuid(), [uuid])
    assert unknown["waited"] >= 3


def test_a_device_is_used_by_compute_processes_and_not_by_graphics_processes(report_of):
    mine = os.getpid()
    rows = [[], [process(mine)], [process(mine, kind="graphics"), process(mine)], None]
    found = [answer(report_of({"processes": each}), state({}))["devices"][0]["is_used"] for each in rows]
    assert found == [False, True, False, None]


def test_options_of_commands_are_never_read(report_of):
    argv = [sys.executable, "-u", "-c", "input()", "--password=hunter2"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as running:
        wait_for(lambda: occupant(running.pid).command == os.path.basename(sys.executable))
        found = answer(report_of({"processes": [process(running.pid)]}), state({}))
        running.communicate(b"\n")
    assert "hunter2" not in json.dumps(found) and "input" not in json.dumps(found)


def test_a_device_of_another_maker_is_named_without_a_holder(home, monkeypatch):
    monkeypatch.setattr(gpus, "name_others", lambda: [("0000:03:00.0", "Intel Arc A770")])
    found = gpu_inventory.look(home, {})
    assert found["state"] == driver_states.NO_DRIVER
    (device,) = found["devices"]
    assert (device["name"], device["state"]) == ("Intel Arc A770", "named")
    assert (device["processes"], device["lease"]) == (None, None)
