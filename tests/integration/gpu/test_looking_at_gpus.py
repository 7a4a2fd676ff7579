"""The operation `gpus` of the far side: who uses which GPU on a machine that several people share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.hosts.host import Local
from kit.accounts import Account, premises
from kit.leasing import holding, waiting
from kit.nvml import Device, Process, Simulated


def ask(gpus: Simulated) -> dict[str, Any]:
    with Local(Path(os.environ["HOLDFAST_HOME"]), {**os.environ, **gpus.environment}).connect() as connection:
        return dict(connection.request("gpus", {"timeout": 30}))


def test_a_machine_without_a_driver_has_nothing_to_say_and_says_so() -> None:
    with Local(Path(os.environ["HOLDFAST_HOME"]), dict(os.environ)).connect() as connection:
        found = connection.request("gpus", {})
    assert (found["state"], found["devices"], found["queue"]) == ("no-driver", [], [])


def test_leases_runs_strangers_and_those_who_wait_are_told_apart(tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("gcc", "useradd", root=True)
    gpus = Simulated(tmp_path / "gpus", [Device(utilization=30, temperature=61), Device()])
    with premises() as folder:
        other = Account.create(folder)
        try:
            with holding(gpus, uid=other.uid, run="theirs_1", child=True) as held, waiting(gpus, gpus=2) as run:
                run.hears()
                gpus.devices[0].processes = [Process(held.child or 0, memory=5)]
                gpus.devices[1].processes = [Process(os.getpid(), memory=6)]
                gpus.write()
                found = ask(gpus)
                first, second = found["devices"]
                about = {"uid": other.uid, "user": other.name, "run": "theirs_1", "pid": held.guardian}
                assert (first["lease"], second["lease"]) == (about, None)
                (theirs,), (stranger,) = first["processes"], second["processes"]
                shown = {"user": other.name, "name": "sleep", "command": "sleep", "memory": 5, "whose": "run"}
                assert shown.items() <= theirs.items()
                assert theirs["run"] == "theirs_1"
                assert (stranger["pid"], stranger["whose"], stranger["run"]) == (os.getpid(), "stranger", None)
                assert (first["utilization"], first["temperature"], first["power"]) == (30, 61, 26.0)
                (place,) = found["queue"]
                assert (place["gpus"], place["uid"], place["devices"]) == (2, 0, sorted(gpus.uuids()))
        finally:
            other.remove()
