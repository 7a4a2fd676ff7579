"""Another account has tickets, leases and processes, as it likes: a run still gets the GPUs that stay free, after a
time that nobody makes longer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.farside.gpu.lease import leases, registry
from holdfast.farside.gpu.lease.leases import LeaseHolder
from holdfast.farside.gpu.occupants import Occupant
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.system.unix_sockets import BoundSocket
from unit.farside.gpu.conftest import Driver, process

MALLORY, EVE, MINE = 66601, 66602, os.getuid()
MINUTE = 60.0
Listed = list[BoundSocket]


def ticket(uuids: list[str], count: int, uid: int = MALLORY, number: int = 1) -> Listed:
    """Of a process in another namespace, which cannot be seen."""
    key = f"{number:016x}-7-{count}-1"
    return [BoundSocket(f"holdfast-gpu-wants/{key}/{each}".encode(), uid) for each in uuids]


def lock(uuid: str, uid: int = MALLORY) -> Listed:
    return [BoundSocket(f"holdfast-gpu/{uuid}".encode(), uid)]


class Ground:
    """Two GPUs, of which nobody uses the first. `lists` says what the kernel lists at a time, in seconds."""

    def __init__(self, driver: Driver, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver, self.report = driver, report
        self.first, self.second = (each["uuid"] for each in report["devices"])
        self.lists: Callable[[float], Listed] = lambda second: []
        monkeypatch.setattr(registry, "bound", lambda prefix: self.lists(driver.clock - 1000))

    def minutes(self, **wanted: Any) -> float:
        """Until a run has the first GPU."""
        found = self.driver.lease(GpuRequest(**{"gpus": 1, **wanted}), self.report)
        assert [each.number for each in found.units] == [0]
        return (self.driver.clock - 1000) / MINUTE


@pytest.fixture
def ground(driver, report_of, monkeypatch) -> Ground:
    return Ground(driver, report_of({"memory_total": 16 << 30, "memory_free": 16 << 30}, {}), monkeypatch)


STARVING: dict[str, Callable[[Ground, float], Listed]] = {
    "a GPU that does not exist": lambda g, _: ticket([g.first, "GPU-none"], 2) + lock(g.second, EVE),
    "a GPU that does not exist and is held": lambda g, _: (
        ticket([g.first, "GPU-none"], 2) + lock("GPU-none", EVE) + lock(g.second, EVE)
    ),
    "a GPU that it holds itself": lambda g, _: ticket([g.first, g.second], 2) + lock(g.second),
    "a GPU that it holds now and then": lambda g, second: (
        ticket([g.first, g.second], 2) + lock(g.second) * (second % 20 < 1)
    ),
    "another GPU comes and goes": lambda g, second: (
        ticket([g.first, g.second], 1) + lock(g.second, EVE) * (second % 20 < 10)
    ),
    "a queue of both kinds": lambda g, _: (
        ticket([g.first], 1) + ticket([g.first, "GPU-none"], 2, number=2) + lock(g.second)
    ),
}


@pytest.mark.parametrize("attack", STARVING)
def test_a_free_gpu_is_had_after_a_minute(ground, attack):
    ground.lists = lambda second: STARVING[attack](ground, second)
    assert ground.minutes() < 1.1


def test_so_is_one_while_the_ticket_waits_for_a_gpu_that_is_too_small_for_this_run(ground):
    ground.lists = lambda second: ticket([ground.first, ground.second], 2)
    assert ground.minutes(min_memory=15 << 30) < 1.1


def test_so_is_one_while_the_ticket_waits_for_a_process_of_its_own_account(ground, monkeypatch):
    monkeypatch.setattr(leases, "strangers", lambda pids: tuple(Occupant(each, MALLORY, "", "", "") for each in pids))
    ground.report["devices"][1]["processes"] = [process(4242)]
    ground.lists = lambda second: ticket([ground.first, ground.second], 2)
    assert ground.minutes() < 1.1


def test_a_ticket_that_waits_for_a_process_of_a_third_account_is_an_honest_one_for_half_an_hour(ground, monkeypatch):
    monkeypatch.setattr(leases, "strangers", lambda pids: tuple(Occupant(each, EVE, "", "", "") for each in pids))
    ground.report["devices"][1]["processes"] = [process(4242)]
    ground.lists = lambda second: ticket([ground.first, ground.second], 2)
    assert 30 < ground.minutes() < 32


def test_a_ticket_that_was_away_has_a_minute_when_it_comes_back(ground, monkeypatch):
    """So has one that may be used again: what the driver said before does not count."""
    busy = [process(4242)]
    ground.driver.then = lambda: ground.report["devices"][0].update(processes=busy * (ground.driver.clock < 1300))

    def lists(second: float) -> Listed:
        return lock(ground.second, EVE) + ticket([ground.first], 1) * (not 60 < second < 300)

    ground.lists = lists
    assert 6 <= ground.minutes() < 6.1


def test_a_gpu_that_was_held_meanwhile_is_looked_at_twice_again(ground):
    def lists(second: float) -> Listed:
        held = lock(ground.first, EVE) * (40 < second < 50)
        return lock(ground.second, EVE) + ticket([ground.first], 1) + held

    ground.lists = lists
    assert 50 + MINUTE <= ground.minutes() * MINUTE < 53 + MINUTE


@pytest.mark.parametrize("period", [1e9, 20, 0.5], ids=["always", "by turns", "at every other look"])
def test_two_accounts_that_work_together_keep_a_gpu_from_nobody_for_longer_than_half_an_hour(ground, period):
    """An honest run for several GPUs gets this time to collect them."""
    ground.lists = lambda second: (
        ticket([ground.first, ground.second], 2) + lock(ground.second, EVE) * (second % period < period / 2)
    )
    assert 30 < ground.minutes() < 32


def test_one_user_with_the_numbers_of_many_accounts_holds_nobody_up_for_longer_than_ten_minutes(ground):
    many = [each for uid in range(100000, 100030) for each in ticket([ground.first], 1, uid)]
    ground.lists = lambda second: many + lock(ground.second, EVE)
    assert ground.minutes() < 10.1


def test_a_run_of_the_same_account_keeps_its_place_behind_an_idle_ticket_of_another(ground):
    """It has to wait for that one too, and then for its second GPU."""
    own = ticket([ground.first, ground.second], 2, MINE, number=2)

    def lists(second: float) -> Listed:
        return ticket([ground.first, ground.second], 1) + (own + lock(ground.second, MINE)) * (second < 50 * MINUTE)

    ground.lists = lists
    assert 50 <= ground.minutes() < 52


def test_a_gpu_that_the_system_does_not_list_as_held_keeps_no_run_from_another(ground):
    held = registry.take([ground.first], LeaseHolder(None, "theirs", 1))
    try:
        found = ground.driver.lease(GpuRequest(gpus=1), ground.report)
    finally:
        registry.close(held or ())
    assert [each.number for each in found.units] == [1]
