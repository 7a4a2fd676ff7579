"""All users of Holdfast on a machine share its GPUs: real users, real processes, real deaths."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.farside.gpu.lease import registry
from integration.interpreters import FOUND
from kit import leasing
from kit.accounts import Account, premises
from kit.leasing import Had, holding, make_the_kernel_collect, overtaken, shared, storm, waiting
from kit.nvml import GIB, Device, Process, Simulated
from kit.waiting import wait_for

PYTHONS = [next(iter(FOUND)), list(FOUND)[-1]]


@pytest.fixture
def simulated(tmp_path: Path, needs: Callable[..., None]) -> Callable[..., Simulated]:
    needs("gcc")
    return lambda *devices: Simulated(tmp_path / "gpus", devices)


@pytest.fixture
def users(needs: Callable[..., None]) -> Iterator[list[Account]]:
    """Four, in a folder that all can enter."""
    needs("useradd", root=True)
    with premises() as folder:
        made = [Account.create(folder) for _ in range(4)]
        try:
            yield made
        finally:
            for account in made:
                account.remove()


def test_80_runs_of_4_users_never_share_one_of_4_gpus_and_have_them_in_the_order_they_came(users, needs):
    needs("gcc")
    folder = users[0].home.parent
    gpus = Simulated(folder / "gpus", [Device()] * 4)
    found = storm(folder, gpus, users, processes=10, runs=2)
    assert len(found) == 80
    assert {each.uid for each in found} == {each.uid for each in users}
    assert {uuid for each in found for uuid in each.uuids} == set(gpus.uuids())
    assert all(len(each.uuids) == (4 if each.gpus == "all" else each.gpus) for each in found)
    assert shared(found) == []
    assert overtaken(found) == []
    assert sum(each.seen is not None for each in found) > 40  # otherwise no run had to wait, and this proves nothing


def test_sharing_and_overtaking_would_be_noticed():
    first = Had("a", 1, 1, asked=1.0, seen=1.1, waited=8.9, begin=9.0, end=10.0, uuids=("x",))
    later = Had("b", 2, 1, asked=2.0, seen=None, waited=None, begin=3.0, end=9.5, uuids=("x", "y"))
    assert shared([first, later]) == [("x", "b", "a")]
    assert overtaken([first, later]) == [("a", "b")]
    fair = Had("c", 2, 1, asked=2.0, seen=2.1, waited=9.9, begin=10.0, end=11.0, uuids=("x",))
    assert shared([first, fair]) == []
    assert overtaken([first, fair]) == []


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lease_outlives_its_supervisor_and_ends_with_its_guardian(simulated, python):
    python, gpus = str(FOUND[python]), simulated(Device(), Device(), Device())
    with holding(gpus, gpus=2, run="mine", python=python) as held:
        assert held.uuids == tuple(gpus.uuids()[:2])
        held.kill_supervisor()
        make_the_kernel_collect()
        with waiting(gpus, gpus=2, run="next", python=python) as other:
            assert other.hears() == f"waiting for 2 GPUs: {named('mine', 0)}; {named('mine', 1)}"
            assert {uuid for uuid in gpus.uuids() if uuid in registry.read().leases} == set(held.uuids)
            held.kill()
            assert other.has()[1] == held.uuids


def named(run: str, number: int) -> str:
    import getpass

    return f"GPU {number} is held by the run {run} of {getpass.getuser()}"


def test_a_guardian_that_is_killed_leaves_the_lease_to_its_supervisor(simulated):
    gpus = simulated(Device())
    with holding(gpus, run="mine") as held:
        held.kill_guardian()
        assert gpus.uuids()[0] in registry.read().leases
        held.kill()
        wait_for(lambda: gpus.uuids()[0] not in registry.read().leases)


def test_what_the_supervisor_executed_does_not_keep_the_lease(simulated):
    gpus = simulated(Device())
    with holding(gpus, child=True) as held:
        held.kill()
        wait_for(lambda: gpus.uuids()[0] not in registry.read().leases)
        assert Path(f"/proc/{held.child}").exists()


def test_a_run_waits_for_a_strangers_process_and_says_whose_it_is(simulated):
    gpus = simulated(Device(processes=[Process(os.getpid(), memory=GIB)]), Device(total=4 * GIB))
    with waiting(gpus, min_memory=8 * GIB) as run:
        told = run.hears()
        assert f": GPU 0 is used by process {os.getpid()} (" in told
        gpus.devices[0].processes = [
            Process(1, memory=9 * GIB, kind="graphics")
        ]  # no compute process, and little free memory
        gpus.write()
        assert run.hears().endswith(": GPU 0 has 2.1 GiB free")
        gpus.devices[0].processes = []
        gpus.write()
        assert run.has()[1] == (gpus.uuids()[0],)


def test_those_who_wait_know_how_many_are_before_them_and_a_place_is_freed_by_death(simulated):
    gpus = simulated(Device(), Device())
    with holding(gpus, gpus="all"), waiting(gpus, gpus="all", run="first") as first:
        first.hears()
        with waiting(gpus, run="second") as second:
            assert second.hears().endswith(": 1 run ahead")
            first.end()
            assert ": GPU 0 is held by the run held of " in second.hears()


def test_a_stopped_run_delays_no_other_and_has_its_place_again_when_it_goes_on(simulated):
    gpus = simulated(Device())
    with holding(gpus) as held, waiting(gpus, run="first") as first:
        first.hears()
        with waiting(gpus, run="second") as second:
            assert second.hears().endswith(": 1 run ahead")
            with waiting(gpus, run="third") as third:
                assert third.hears().endswith(": 2 runs ahead")
                first.pause()
                held.kill()
                assert second.has()[1] == tuple(gpus.uuids())
                first.resume()
                wait_for(lambda: third.hears().endswith(": 1 run ahead"))
                second.end()
                assert first.has()[1] == tuple(gpus.uuids())


def test_a_driver_that_answers_late_is_waited_for(simulated):
    gpus = simulated(Device())
    gpus.stalls = {"nvmlInit_v2"}
    gpus.write()
    with waiting(gpus, patience=2.0) as run:
        assert run.hears() == "waiting for a GPU: the driver does not answer"
        gpus.stalls = set()
        gpus.write()
        assert run.has()[1] == tuple(gpus.uuids())


def test_of_runs_that_wait_the_status_says_for_what(bench, simulated, monkeypatch):
    gpus = simulated(Device())
    for name, value in gpus.environment.items():
        monkeypatch.setenv(name, value)
    bench.write("train.py", "pass\n")

    def waits(run: str, said: str) -> bool:
        return said in (status(bench, run)["phase"] or "")

    with holding(gpus, run="theirs"):
        runs: list[str] = []
        for said in (f": {named('theirs', 0)}", "1 run ahead", "2 runs ahead"):
            runs.append(bench.start("--gpus", "1", "train.py"))
            wait_for(partial(waits, runs[-1], said), 120, what=said)
        listed = bench.run("experiment", "status", "-o", "table").out
        assert ": 2 runs ahead" in listed
        for each in runs:
            assert bench.run("cancel", "-r", each).code == 0
    assert {bench.record(each)["status"] for each in runs} == {"Canceled"}


def status(bench, run: str) -> dict[str, str | None]:
    result = bench.run("experiment", "status", "-r", run, "-o", "json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    return next(each for each in found if each["run_id"] == run) if isinstance(found, list) else found


def test_a_later_run_takes_what_those_before_it_cannot_use(simulated):
    gpus = simulated(Device(total=40 * GIB), Device(total=12 * GIB))
    with holding(gpus), waiting(gpus, min_memory=20 * GIB, run="large") as large:
        assert "GPU 0 is held" in large.hears()
        with waiting(gpus, run="small") as small:
            assert small.has()[1] == (gpus.uuids()[1],)


def test_the_kit_sees_no_lease_of_machines_of_other_tests(simulated, tmp_path):
    with holding(simulated(Device())) as held:
        other = Simulated(tmp_path / "other", [Device()])
        with leasing.waiting(other) as run:
            assert run.has()[1] == tuple(other.uuids()) != held.uuids
