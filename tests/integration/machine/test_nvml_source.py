"""NVML asked by its C calls: what a look learns, and that it never takes more than four."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.watch.nvml_source import CALLS, NvmlSource
from holdfast.farside.gpu.watch.source import DeviceLook, Lost, Unusable
from kit.nvml import DRIVER_NOT_LOADED, GIB, NO_PERMISSION, UNKNOWN, Device, Instance, Process, Simulated

COMPUTE = "nvmlDeviceGetComputeRunningProcesses"
Opened = Callable[[Simulated], NvmlSource]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    def make(gpus: Simulated) -> NvmlSource:
        for name, value in gpus.environment.items():
            monkeypatch.setenv(name, value)
        source = NvmlSource(dict(gpus.environment))
        source.open()
        return source

    return make


def looks(source: NvmlSource, gpus: Simulated, count: int = 4, number: int = 0) -> list[DeviceLook]:
    """Several looks, none with too many calls."""
    found = []
    for _ in range(count):
        before = len(gpus.calls())
        found.append(source.look(number, False))
        assert len(gpus.calls()) - before <= CALLS
    return found


def test_a_look_learns_who_computes_and_the_rest_in_turn(simulated, opened: Opened) -> None:
    busy = Process(4242, GIB, utilization=60)
    gpus = simulated(Device(temperature=81, power=149_000, processes=[busy, Process(4243, None)], utilization=9))
    source = opened(gpus)
    assert source.devices() == (GpuDevice(0, gpus.uuids()[0], "Tesla K80", 11_996_954_624),)
    always = DeviceLook(utilisation=69, processes={4242: GIB, 4243: None}, shares={4242: 60, 4243: 0})
    used = GIB + (64 << 20)
    assert looks(source, gpus) == [
        always._replace(power=149.0, memory=used),  # its memory is known from the start
        always._replace(temperature=81),
        always._replace(memory=used),
        always,
    ]


def test_four_calls_are_made_and_no_more_for_each_of_many_devices(simulated, opened: Opened) -> None:
    gpus = simulated(*[Device(processes=[Process(7, utilization=5)]) for _ in range(8)])
    source = opened(gpus)
    before = len(gpus.calls())
    for _ in range(8):
        for number in range(8):
            source.look(number, False)
    calls = [function for _, function in gpus.calls()[before:]]
    assert len(calls) == 8 * 8 * CALLS
    assert calls.count(f"{COMPUTE}_v3") == calls.count("nvmlDeviceGetProcessUtilization") == 64
    assert calls.count("nvmlDeviceGetUtilizationRates") == 64
    in_turn = {name: calls.count(name) for name in set(calls) if calls.count(name) != 64}
    assert set(in_turn.values()) == {16} and len(in_turn) == 4


def test_a_list_that_outgrows_its_buffer_costs_the_call_in_turn(simulated, opened: Opened) -> None:
    gpus = simulated(Device(processes=[Process(pid, 1 << 20) for pid in range(1000, 1100)]))
    source = opened(gpus)
    first, second = looks(source, gpus, 2)
    assert first.processes is not None and len(first.processes) == 100
    assert first.shares is not None and len(first.shares) == 100
    assert (first.utilisation, first.power) == (None, None), "two lists grew, and four calls are all"
    assert (second.utilisation, second.power) == (0, 26.0)


def test_an_older_driver_has_the_second_form_of_the_call_only(simulated, opened: Opened) -> None:
    gpus = simulated(Device(processes=[Process(7, GIB)]))
    gpus.errors = {f"{COMPUTE}_v3": 13}
    gpus.write()
    source = opened(gpus)
    assert source.look(0, False).processes == {7: GIB}
    assert looks(source, gpus, 1)[0].processes == {7: GIB}


def test_what_the_driver_does_not_support_is_unknown(simulated, opened: Opened) -> None:
    kepler = {"nvmlDeviceGetProcessUtilization", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage"}
    gpus = simulated(Device(processes=[Process(7, GIB)], unsupported=kepler))
    first = looks(opened(gpus), gpus, 1)[0]
    assert first == DeviceLook(memory=GIB + (64 << 20), processes={7: GIB})


def test_no_compute_process_is_an_answer_and_not_unknown(simulated, opened: Opened) -> None:
    gpus = simulated(Device())
    assert looks(opened(gpus), gpus, 1)[0].shares == {}


def test_clients_of_mps_are_processes_like_others_and_asked_for_first_when_a_run_waits(
    simulated, opened: Opened
) -> None:
    gpus = simulated(Device(processes=[Process(50, GIB), Process(51, 2 * GIB, kind="mps")]))
    source = opened(gpus)
    found = looks(source, gpus, 6)
    assert [sorted(look.processes or ()) for look in found] == [[50]] * 3 + [[50, 51]] * 3
    gpus.devices[0].processes.pop()
    gpus.write()
    assert source.look(0, False).processes == {50: GIB, 51: 2 * GIB}
    assert source.look(0, True).processes == {50: GIB}


@pytest.mark.parametrize("closed", [False, True], ids=["privileged", "not privileged"])
def test_a_device_in_parts_has_the_processes_of_all_parts_and_no_utilisation(
    closed: bool, simulated, opened: Opened
) -> None:
    processes = [Process(7, GIB, instance=0), Process(7, GIB, instance=4), Process(8, 5, utilization=40, instance=6)]
    gpus = simulated(Device(mig=True, closed=closed, instances=[Instance()] * 7, processes=processes))
    source = opened(gpus)
    assert source.devices()[0].mig
    last = looks(source, gpus, 5)[-1]
    assert last.processes == {7: 2 * GIB, 8: 5}
    assert (last.utilisation, last.shares) == (None, None)
    gpus.devices[0].processes = processes[1:]
    gpus.write()
    assert looks(source, gpus, 3)[-1].processes == {7: GIB, 8: 5}


def test_a_lost_device_says_so_and_is_found_again(simulated, opened: Opened) -> None:
    gpus = simulated(Device(), Device(processes=[Process(7, GIB)]))
    source = opened(gpus)
    gpus.devices[1].lost = True
    gpus.write()
    for _ in range(2):
        with pytest.raises(Lost, match="GPU is lost"):
            source.look(1, False)
    assert source.look(0, False).processes == {}
    gpus.devices[1].lost = False
    gpus.write()
    assert looks(source, gpus, 2, number=1)[1].processes == {7: GIB}
    assert source.devices()[1].uuid == gpus.uuids()[1]


def test_a_device_that_was_lost_from_the_start_is_known_once_it_answers(simulated, opened: Opened) -> None:
    gpus = simulated(Device(lost=True))
    source = opened(gpus)
    assert source.devices() == (GpuDevice(0, "", ""),)
    gpus.devices[0].lost = False
    gpus.write()
    source.look(0, False)
    assert source.devices()[0].uuid == gpus.uuids()[0]


def test_a_device_of_which_no_call_answers_is_lost_and_one_call_that_fails_is_not(simulated, opened: Opened) -> None:
    gpus = simulated(Device(errors={"nvmlDeviceGetUtilizationRates": UNKNOWN}), Device())
    source = opened(gpus)
    assert source.look(0, False).utilisation is None
    gpus.devices[1].errors = {"*": UNKNOWN}
    gpus.write()
    with pytest.raises(Lost, match="Unknown Error"):
        source.look(1, False)


def test_a_device_that_this_user_may_not_see_is_not_watched(simulated, opened: Opened) -> None:
    gpus = simulated(Device(errors={"nvmlDeviceGetHandleByIndex_v2": NO_PERMISSION}), Device())
    assert [device.number for device in opened(gpus).devices()] == [1]


def test_a_library_that_cannot_start_says_why(simulated, opened: Opened, tmp_path) -> None:
    with pytest.raises(Unusable, match="Driver Not Loaded"):
        opened(simulated(Device(), init=DRIVER_NOT_LOADED))
    (tmp_path / "broken.so").write_bytes(b"no library")
    with pytest.raises(Unusable, match=r"broken\.so"):
        NvmlSource({"HOLDFAST_NVML": str(tmp_path / "broken.so")}).open()
