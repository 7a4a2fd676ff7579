"""The far side's answer becomes values; null is not known."""

from __future__ import annotations

from holdfast.hosts.machine_report import DeviceState, GpuInstance, GpuProcess, Quota
from kit.reports import facts_of, gpus_of


def test_a_quota_is_read_with_its_limits():
    quota = {"used": 1, "limit": None, "files": 2, "files_limit": 3}
    assert facts_of(folder={"path": "/x", "quota": quota}).folder.quota == Quota(1, None, 2, 3)


def test_devices_keep_what_is_known():
    row = {
        "index": 1,
        "state": "ok",
        "name": "A100",
        "capability": [8, 0],
        "mig": True,
        "instances": [{"index": 2, "name": "part", "uuid": "MIG-1", "memory_total": 5}],
        "processes": [{"pid": 7, "memory": None, "kind": "compute"}],
    }
    (device,) = gpus_of(state="ok", driver="535", cuda="12.2", devices=[row]).devices
    assert (device.state, device.capability, device.memory_total, device.mig) == (DeviceState.OK, (8, 0), None, True)
    assert device.instances == (GpuInstance(2, "part", "MIG-1", 5, None, None),)
    assert device.processes == (GpuProcess(7, None, "compute"),)
