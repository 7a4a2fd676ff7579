"""Runs that wait for the same devices: whose turn it is, who is passed, and who gives up the place."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.idle_tickets import TURN, IdleTickets, Seen
from holdfast.farside.gpu.lease.leases import LeaseHolder
from holdfast.farside.gpu.lease.registry import Ticket
from holdfast.farside.gpu.request import GpuRequest
from kit.waiting import wait_for
from unit.farside.gpu.conftest import process


def test_a_device_that_another_has_is_waited_for_by_name(driver, report_of):
    report = report_of({}, {}, {})
    held = driver.lease(GpuRequest(gpus="all"), report, run="theirs")
    driver.then = lambda: registry.close(held.sockets)
    assert driver.lease(GpuRequest(gpus=1), report).units[0].number == 0
    by = f"is held by the run theirs of {getpass.getuser()}"
    assert driver.waited_for() == [f"GPU 0 {by}; GPU 1 {by}; 1 more"]


@pytest.fixture
def waiter(report_of) -> Iterator[subprocess.Popen[str]]:
    """A run that came before and could use the only device."""
    code = (
        "import sys; from holdfast.farside.gpu.lease import registry\n"
        "places = registry.queue_up(1, sys.argv[1:]); print(flush=True); input()"
    )
    argv = [sys.executable, "-c", code, report_of({})["devices"][0]["uuid"]]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and started.stdout.readline() == "\n"
        yield started
        started.kill()


def test_a_stopped_run_delays_no_other_and_has_its_place_when_it_goes_on(driver, report_of, waiter):
    def stopped() -> bool:
        with open(f"/proc/{waiter.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    waits: list[bool] = []

    def stop_then_go_on() -> None:
        waits.append(stopped())
        waiter.send_signal(signal.SIGSTOP)
        wait_for(stopped)

    driver.then = stop_then_go_on
    first = driver.lease(GpuRequest(gpus=1), report_of({}))
    assert waits == [False]
    assert driver.waited_for() == ["1 run ahead"]
    registry.close(first.sockets)
    waiter.send_signal(signal.SIGCONT)
    wait_for(lambda: not stopped())
    driver.then = stop_then_go_on
    driver.lease(GpuRequest(gpus=1), report_of({}))
    assert waits == [False, False]


def test_a_place_that_outlives_its_run_delays_no_other_run(driver, report_of, monkeypatch):
    with subprocess.Popen(["true"]) as gone:
        pass
    with monkeypatch.context() as changed:
        changed.setattr(os, "getpid", lambda: gone.pid)
        _, places = registry.queue_up(1, [report_of({})["devices"][0]["uuid"]])
    try:
        driver.lease(GpuRequest(gpus=1), report_of({}))
    finally:
        registry.close(places)
    assert driver.told == []


def test_a_run_that_takes_no_turn_is_passed_when_the_driver_has_long_had_nothing_against_it(driver, report_of):
    """What keeps the first from a device may be what keeps all from it."""
    busy, free = report_of({"processes": [process(os.getpid())]}), report_of({})
    _, places = registry.queue_up(1, [free["devices"][0]["uuid"]])
    try:
        driver.lease(GpuRequest(gpus=1), free, busy, free, busy, free, free)
    finally:
        registry.close(places)
    assert driver.waited_for() == ["1 run ahead"]
    assert 5 * TURN <= driver.clock - 1000 < 6 * TURN


@pytest.mark.parametrize(("gpus", "wanted"), [(2, 1), (1, 2)], ids=["for the first", "for the next"])
def test_a_run_whose_turn_has_not_come_is_not_passed(driver, report_of, gpus, wanted):
    report = report_of({}, {})
    uuids = [each["uuid"] for each in report["devices"]]
    held = registry.take(uuids[:1], LeaseHolder(None, "theirs", 1))
    _, places = registry.queue_up(gpus, uuids)

    def go_on_after_ten_minutes() -> None:
        if driver.clock > 1600:
            registry.close([*(held or ()), *places])

    driver.then = go_on_after_ten_minutes
    driver.lease(GpuRequest(gpus=wanted), report)
    assert driver.waited_for() == ["1 run ahead"]
    assert driver.asked == 1


def test_it_takes_longer_to_pass_runs_of_more_accounts():
    clock, idle, mine = [0.0], IdleTickets(frozenset("a")), Ticket(9, 9, 1, frozenset("a"), uid=0)
    ahead = [Ticket(1, 1, 1, frozenset("a"), uid=1), Ticket(2, 2, 1, frozenset("a"), uid=2)]
    asked, clear, passed = [], frozenset("a"), []

    def look() -> Seen:
        asked.append(clock[0])
        return Seen(frozenset() if len(asked) == 2 else clear, {"a": frozenset()})

    for clock[0] in range(20 * 60):
        if not idle.rest(ahead, mine, {}, look, clock[0]):
            passed.append(clock[0])
    assert asked[:4] == [TURN * 2 * each for each in (1, 2, 3, 4)]
    assert passed[0] == TURN * 2 * 4


@pytest.mark.parametrize(("count", "said"), [(1, "1 run ahead"), (2, "2 runs ahead")])
def test_one_who_is_not_next_hears_how_many_are(driver, report_of, count, said):
    uuids = [each["uuid"] for each in report_of({})["devices"]]
    places = [registry.queue_up(1, uuids)[1] for _ in range(count)]
    driver.then = lambda: registry.close([each for sockets in places for each in sockets])
    driver.lease(GpuRequest(gpus=1), report_of({}))
    assert driver.waited_for() == [said]


def test_to_stop_waiting_gives_up_the_place(driver, report_of):
    report = report_of({"processes": [process(os.getpid())]})

    def stop() -> None:
        raise KeyboardInterrupt

    driver.then = stop
    with pytest.raises(KeyboardInterrupt):
        driver.lease(GpuRequest(gpus=1), report)
    uuid = report["devices"][0]["uuid"]
    assert not any(uuid in each.usable for each in registry.read().tickets)


def test_a_quicker_run_makes_the_other_try_again(driver, report_of, monkeypatch):
    take, lost = registry.take, list[Any]()

    def take_late(uuids: tuple[str, ...], who: LeaseHolder) -> Any:
        if not lost:
            lost.extend(take(uuids, LeaseHolder(0, "quicker", 1)) or [])
        return take(uuids, who)

    monkeypatch.setattr(registry, "take", take_late)
    assert driver.lease(GpuRequest(gpus=1), report_of({}, {})).units[0].number == 1
    registry.close(lost)
