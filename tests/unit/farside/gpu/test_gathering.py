"""What is known about the machine before the run uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.gpu.occupants import MPS_SERVER, has_machine_pids, occupant, occupied
from kit.waiting import wait_for


def process(pid: int, kind: str = "compute") -> dict[str, Any]:
    return {"pid": pid, "memory": 1 << 30, "kind": kind, "instance": None}


@pytest.fixture
def mps_server(tmp_path: Path) -> Iterator[int]:
    program = tmp_path / f"{MPS_SERVER}-server"
    shutil.copy(shutil.which("sleep") or "", program)
    server = subprocess.Popen([str(program), "100"])
    wait_for(lambda: occupant(server.pid).name == MPS_SERVER)
    yield server.pid
    server.kill()
    server.wait()


def test_who_computes_on_a_device_is_a_stranger_and_who_draws_on_a_screen_is_not(report_of):
    rows = [process(7001), process(7001, "graphics"), process(7003, "mps"), process(7002, "graphics"), process(7000)]
    found = occupied(report_of({"processes": [*rows, process(7003)]}, {"processes": None}))
    assert [each.strangers for each in found] == [(7000, 7003), ()]


def test_the_server_of_mps_belongs_to_no_run(report_of, mps_server):
    found = occupied(report_of({"processes": [process(mps_server), process(7000, "mps")]}))
    assert found[0].strangers == (7000,)


@pytest.mark.parametrize(("link", "is_machines"), [("pid:[4026531836]", True), ("pid:[4026532573]", False)])
def test_a_container_with_its_own_numbers_of_processes_is_told_from_the_machine(monkeypatch, link, is_machines):
    monkeypatch.setattr(os, "readlink", {"/proc/self/ns/pid": link}.__getitem__)
    assert has_machine_pids() is is_machines
