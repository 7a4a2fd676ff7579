"""The far side's answer becomes values; what it does not say is not known."""

from __future__ import annotations

from holdfast.hosts.facts import DeviceState, GpuInstance, GpuProcess, GpuState, Quota, parse_facts, parse_gpus


def test_an_answer_without_anything_is_a_machine_of_which_nothing_is_known():
    facts = parse_facts({})
    assert (facts.system, facts.glibc, facts.pythons) == ("", None, ())
    assert (facts.cores.usable, facts.memory.total, facts.folder.free, facts.folder.quota) == (None, None, None, None)
    assert (facts.docker.path, facts.docker.problem) == (None, "")
    assert facts.gpus.state is GpuState.NO_DRIVER


def test_a_quota_is_read_with_its_limits():
    folder = {"path": "/x", "quota": {"used": 1, "limit": None, "files": 2, "files_limit": 3}}
    assert parse_facts({"folder": folder}).folder.quota == Quota(1, None, 2, 3)


def test_devices_keep_what_is_known_and_unknown_words_are_failures():
    row = {
        "index": 1,
        "state": "ok",
        "name": "A100",
        "capability": [8, 0],
        "mig": True,
        "instances": [{"index": 2, "name": "part", "uuid": "MIG-1", "memory_total": 5}],
        "processes": [{"pid": 7, "memory": None, "kind": "compute"}],
    }
    gpus = parse_gpus({"state": "ok", "driver": "535", "cuda": "12.2", "devices": [row, {"index": 2, "state": "odd"}]})
    first, second = gpus.devices
    assert (first.state, first.capability, first.memory_total, first.mig) == (DeviceState.OK, (8, 0), None, True)
    assert first.instances == (GpuInstance(2, "part", "MIG-1", 5, None, None),)
    assert first.processes == (GpuProcess(7, None, "compute"),)
    assert (second.state, second.processes) == (DeviceState.FAILED, None)
    assert parse_gpus({"state": "a later word"}).state is GpuState.FAILED
