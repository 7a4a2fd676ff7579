"""AMD GPUs as AMD's own module reports them."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.watch.amd_source import AmdSource
from holdfast.farside.gpu.watch.source import DeviceLook, Lost, Unusable
from kit.amd import GIB, Device, Process, Simulated

Opened = Callable[[Simulated], AmdSource]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)

    def make(gpus: Simulated) -> AmdSource:
        for name, value in gpus.environment.items():
            monkeypatch.setenv(name, value)
        source = AmdSource(gpus.environment["HOLDFAST_AMDSMI"])
        source.open()
        return source

    return make


def looks(source: AmdSource, count: int = 3) -> list[DeviceLook]:
    return [source.look(0, False) for _ in range(count)]


def test_devices_are_named_with_their_memory_in_bytes(tmp_path, opened):
    source = opened(Simulated(tmp_path, [Device(), Device(name="AMD Radeon PRO W7900", uuid="b", total=48 * GIB)]))
    assert source.devices() == (
        GpuDevice(0, "8aff740f-0000-1000-80d8-c14ed0f57ea0", "AMD Instinct MI210", 64 * GIB),
        GpuDevice(1, "b", "AMD Radeon PRO W7900", 48 * GIB),
    )


def test_a_look_has_activity_and_processes_and_the_rest_in_turn(tmp_path, opened):
    gpus = Simulated(tmp_path, [Device(activity=97, used=GIB, power=212, junction=61, processes=[Process(4242, GIB)])])
    source = opened(gpus)
    before = len(gpus.calls())
    always = DeviceLook(utilisation=97, processes={4242: GIB}, shares=None)
    turns = [always._replace(power=212.0), always._replace(temperature=61), always._replace(memory=GIB)]
    assert looks(source) == turns
    assert len(gpus.calls()) - before <= 3 * 4


def test_an_edge_that_has_a_sensor_is_preferred_and_older_versions_list_handles_of_processes(tmp_path, opened):
    device = Device(edge=44, junction=61, processes=[Process(7, GIB), Process(8, 0)])
    found = looks(opened(Simulated(tmp_path, [device], has_handles=True)))
    assert (found[0].processes, found[1].temperature) == ({7: GIB, 8: 0}, 44)


def test_what_is_not_available_is_unknown(tmp_path, opened):
    fails = ["amdsmi_get_gpu_process_list", "amdsmi_get_power_info", "amdsmi_get_temp_metric"]
    first, second, third = looks(opened(Simulated(tmp_path, [Device(activity="N/A", fails=fails)])))
    assert (first, second) == (DeviceLook(), DeviceLook())
    assert third == DeviceLook(memory=12 << 20)


def test_a_device_that_answers_nothing_is_lost_until_it_answers(tmp_path, opened):
    gpus = Simulated(tmp_path, [Device(fails=["*"])])
    source = opened(gpus)
    assert source.devices()[0].uuid == ""
    with pytest.raises(Lost, match="NOT_SUPPORTED"):
        source.look(0, False)
    gpus.devices[0].fails = []
    gpus.write()
    assert source.look(0, False).processes == {}
    assert source.devices()[0].name == "AMD Instinct MI210"


def test_a_library_that_cannot_start_and_a_module_that_is_not_there_say_so(tmp_path, opened, monkeypatch):
    with pytest.raises(Unusable, match="driver not loaded"):
        opened(Simulated(tmp_path, [Device()], init="driver not loaded"))
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(Unusable, match="amdsmi"):
        AmdSource(str(tmp_path)).open()
