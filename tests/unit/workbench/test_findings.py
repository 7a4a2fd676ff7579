"""What the facts of a machine mean for runs, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.hosts.machine_report import MachineFacts
from holdfast.workbench.machines.machine_findings import MachineFinding, findings
from kit.reports import facts_of

HEALTHY: dict[str, Any] = {
    "time": 1000.0,
    "user": "me",
    "glibc": "2.36",
    "memory": {"total": 8 << 30, "available": 4 << 30},
    "folder": {
        "path": "/home/me/.holdfast",
        "file_system": "ext4",
        "network": False,
        "noexec": False,
        "writable": True,
        "total": 10**12,
        "free": 10**11,
        "inodes_free": 10**6,
    },
    "temporary": {"path": "/tmp", "noexec": False, "writable": True},
    "docker": {"path": None, "version": None, "problem": ""},
    "gpus": {"state": "ok", "driver": "535", "devices": [{"index": 0, "state": "ok", "name": "A100"}]},
}


FULL = {"used": 90, "limit": 100, "files": 0, "files_limit": None}


def machine(**changes: Any) -> MachineFacts:
    """Healthy except for the changes; a change of a part names only its keys."""
    parts = {name: value for name, value in HEALTHY.items() if isinstance(value, dict)}
    changed = {name: {**parts[name], **value} if name in parts else value for name, value in changes.items()}
    return facts_of(**{**HEALTHY, **changed})


def one(facts: MachineFacts) -> MachineFinding:
    (found,) = findings(facts)
    return found


def test_a_healthy_machine_has_no_findings():
    assert findings(machine(), now=1030.0) == []


@pytest.mark.parametrize(
    ("changes", "words", "stops"),
    [
        ({"folder": {"writable": False}}, "cannot be written", True),
        ({"folder": {"free": 10**9}}, "1.0 GB free", False),
        ({"folder": {"free": 10**6}}, "1.0 MB free", True),
        ({"folder": {"quota": FULL}}, "10 B free by the quota", True),
        ({"folder": {"inodes_free": 5000}}, "Only 5000 more files fit", False),
        ({"folder": {"inodes_free": 0}}, "Only 0 more files fit", True),
        ({"folder": {"network": True, "file_system": "nfs4"}}, "network file system (nfs4)", False),
        ({"folder": {"noexec": True}}, "may not be started (noexec): environments", False),
        ({"temporary": {"noexec": True}}, "temporary folder `/tmp` may not be started (noexec)", False),
        ({"temporary": {"writable": False}}, "temporary folder `/tmp` cannot be written", False),
        ({"glibc": None}, "another C library than glibc", False),
        ({"glibc": "2.17"}, "glibc is 2.17", False),
        ({"memory": {"available": 10**8}}, "little memory: 100 MB available", False),
        ({"memory": {"limit": 2 * 10**8}}, "little memory: 200 MB available", False),
        ({"docker": {"path": "/usr/bin/docker", "problem": "permission denied"}}, "Docker cannot be used", False),
        ({"gpus": {"state": "no-driver", "devices": []}}, "no NVIDIA driver", False),
        ({"gpus": {"state": "ok", "devices": []}}, "has no device", False),
        ({"gpus": {"state": "timed-out", "problem": "GPU 1 does not answer"}}, "hangs: GPU 1 does not answer", False),
    ],
)
def test_each_state_has_its_sentence_and_a_remedy(changes, words, stops):
    found = one(machine(**changes))
    assert words in found.message
    assert found.message.endswith(".")
    assert found.remedy
    assert found.stops_runs is stops


def docker(problem: str) -> dict[str, Any]:
    return {"docker": {"path": "/usr/bin/docker", "problem": problem}}


def driver(problem: str, code: int) -> dict[str, Any]:
    return {"gpus": {"state": "failed", "problem": problem, "code": code, "devices": []}}


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        (docker("permission denied while trying"), "usermod -aG docker me"),
        (docker("Cannot connect. Is the docker daemon running?"), "systemctl start docker"),
        (driver("Driver/library version mismatch", 18), "restart the machine"),
        (driver("Driver Not Loaded", 9), "modprobe nvidia"),
    ],
)
def test_the_remedy_for_docker_and_for_the_driver_depends_on_the_reason(changes, remedy):
    found = one(machine(**changes))
    assert remedy in found.remedy
    assert not found.message.endswith("?.")


def test_a_lost_device_and_one_in_mig_mode_without_a_part_are_named():
    devices = [
        {"index": 0, "state": "lost", "name": "Tesla K80", "problem": "GPU is lost"},
        {"index": 1, "state": "ok", "name": "A100", "mig": True, "instances": []},
    ]
    lost, empty = findings(machine(gpus={"devices": devices}))
    assert lost.message == "GPU 0 (Tesla K80) does not work: GPU is lost."
    assert "GPU 1 (A100) is in MIG mode and has no instance" in empty.message


def test_a_clock_that_is_off_is_told_with_its_direction():
    (behind,) = findings(machine(), now=1100.0)
    (ahead,) = findings(replace(machine(), time=5000.0), now=1000.0)
    assert "100 s behind" in behind.message
    assert "4000 s ahead of" in ahead.message


def test_what_stops_runs_comes_first():
    found = findings(machine(glibc=None, folder={"free": 0}))
    assert [each.stops_runs for each in found] == [True, False]


def test_another_architecture_is_named_and_another_name_of_the_same_one_is_not():
    arm = replace(machine(), architecture="aarch64")
    (found,) = findings(arm, here="x86_64")
    assert "architecture is aarch64, the one here is x86_64" in found.message
    assert not found.stops_runs
    assert findings(arm, here="arm64") == []
    assert findings(arm) == []
