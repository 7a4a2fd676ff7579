"""Another account of a machine binds the names of leases and tickets, as it likes: it kills, starves and impersonates
no run that waits for a GPU."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.farside.gpu.lease import leases, registry
from holdfast.farside.gpu.lease.leases import LeaseHolder
from holdfast.farside.gpu.lease.registry import mark
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.machine import gpus as driver
from holdfast.farside.operations import gpu_inventory
from holdfast.farside.system.unix_sockets import BoundSocket
from kit.accounts import Account, premises
from kit.leasing import Waiting, holding, waiting
from kit.nvml import Device, Simulated
from kit.squatting import squatting

NAMESPACE = registry._namespace()
BOOT = "0" * 16


@pytest.fixture
def accounts(needs: Callable[..., None]) -> Iterator[tuple[Account, Account]]:
    """The victim and the attacker, in a folder that both can enter."""
    needs("gcc", "useradd", root=True)
    with premises() as folder:
        made = (Account.create(folder), Account.create(folder))
        try:
            yield made
        finally:
            for account in made:
                account.remove()


@pytest.fixture
def ada(accounts) -> Account:
    return accounts[0]


@pytest.fixture
def mallory(accounts) -> Account:
    return accounts[1]


@pytest.fixture
def simulated(accounts) -> Callable[..., Simulated]:
    return lambda *devices: Simulated(accounts[0].home.parent / "gpus", devices)


def wants(uuid: str, time: str = BOOT, pid: str = "{pid}", count: str = "1", space: str = f"{NAMESPACE:x}") -> bytes:
    return f"holdfast-gpu-wants/{time}-{pid}-{count}-{space}/{uuid}".encode()


def said_of(run: Waiting) -> str:
    """For what it waits."""
    return run.hears().partition(": ")[2]


def inventory(gpus: Simulated) -> dict[str, Any]:
    report = driver.ask({**os.environ, **gpus.environment}, 60.0)
    return gpu_inventory.answer(report, registry.read())


BAD_TICKETS = {
    "a process of 20 digits": {"pid": "9" * 20},
    "a process beyond 64 bits": {"pid": str(2**64)},
    "every process": {"pid": "-1"},
    "no process": {"pid": "0"},
    "a time beyond 64 bits": {"time": "f" * 30},
    "a time of the future": {"time": "7" + "f" * 15},
    "a negative time": {"time": "-" + "1" * 15},
    "more GPUs than it could use": {"count": "9999"},
    "GPUs beyond 64 bits": {"count": "9" * 20},
    "no GPUs": {"count": "0"},
    "digits of another script": {"pid": "\u0661"},
    "a time before its process": {},
    "a process of another account": {"pid": "1", "time": "{time}"},
}


ALL = {"all at once": tuple(BAD_TICKETS.values())}
EACH = {name: (words,) for name, words in BAD_TICKETS.items()}


@pytest.mark.parametrize(
    "tickets",
    [pytest.param(each, id=name, marks=[pytest.mark.soak] * (name in EACH)) for name, each in (ALL | EACH).items()],
)
def test_a_bad_ticket_that_is_there_first_is_not_waited_for(simulated, ada, mallory, tickets):
    gpus = simulated(Device())
    names = [wants(gpus.uuids()[0], **words) for words in tickets]
    with squatting(mallory.uid, *names):
        assert inventory(gpus)["queue"] == []  # the only place for one of the future, which is before nobody
        with waiting(gpus, uid=ada.uid) as run:
            assert run.has()[1] == tuple(gpus.uuids())
            assert run.told == []


def test_numbers_and_words_that_no_run_would_say_kill_nobody(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    bad = [
        b"",
        b"/",
        b"\xff",
        b"\x1b[2J",
        b"9" * 60,
        b"-1/-1/-1/-1",
        b"//////",
        b"\n\n\n",
        b"\0\0",
        b"%s%n",
        b"1-1-1-1/",
    ]
    names = [kind + each for kind in (b"of/", b"wants/", b"waits/", b"/") for each in bad]
    names += [b"of/%s/%s/x" % (mark(uuid).encode(), pid) for pid in (b"9" * 40, b"-1", b"0", b"\xd9\xa1")]
    names = [b"holdfast-gpu" + (each if each[:1] == b"/" else b"-" + each) for each in names]
    with squatting(mallory.uid, *names), waiting(gpus, uid=ada.uid) as run:
        assert run.has()[1] == (uuid,)


def test_a_name_with_line_feeds_is_not_the_lease_or_ticket_that_it_draws(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    drawn = [b"x\n @holdfast-gpu/" + uuid.encode(), b"x\n @" + wants(uuid, pid="2", space="0")]
    with squatting(mallory.uid, *drawn), waiting(gpus, uid=ada.uid) as run:
        assert run.has()[1] == (uuid,)
        assert run.told == []


def test_a_socket_of_another_type_with_the_name_of_a_lease_is_none(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    names = [f"holdfast-gpu/{uuid}".encode(), wants(uuid, space="0")]
    with squatting(mallory.uid, *names, kind=socket.SOCK_DGRAM), waiting(gpus, uid=ada.uid) as run:
        assert run.has()[1] == (uuid,)
        assert run.told == []


def test_nobody_who_comes_later_is_before_a_run_that_waits(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    with holding(gpus, run="mine", uid=ada.uid) as held, waiting(gpus, uid=ada.uid) as run:
        run.hears()
        elsewhere = f"{NAMESPACE ^ 1:x}"  # where nothing can be said against it
        names = [wants(uuid), wants(uuid, space="0"), wants(uuid, space=elsewhere)]
        with squatting(mallory.uid, *names):
            held.kill()
            assert run.has()[1] == (uuid,)
            assert not any("ahead" in each for each in run.told)


@pytest.fixture
def at_ease(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A run of this process leases a GPU, while time passes in its waits only. Returns what it says it waits for."""

    def lease(gpus: Simulated, minutes: float) -> list[str]:
        report, told, clock = driver.ask({**os.environ, **gpus.environment}, 60.0), list[str](), [1000.0]
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])

        def wait(seconds: float) -> None:
            clock[0] += seconds
            assert clock[0] < 1000 + minutes * 60, f"it is starved: {told[-1].partition(': ')[2]}"

        who = LeaseHolder(os.getuid(), "mine", os.getpid())
        found = leases.lease(GpuRequest(gpus=1), report, lambda: report, told.append, wait, who)
        registry.close(found.sockets)
        return [each.partition(": ")[2] for each in told]

    return lease


@pytest.mark.time_limit(300, "reads a queue of 5,000 again and again")
@pytest.mark.parametrize("count", [1, 500, pytest.param(5000, marks=pytest.mark.soak)])
def test_tickets_that_take_no_turn_hold_nobody_up_for_long(simulated, mallory, at_ease, count):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    elsewhere = f"{NAMESPACE ^ 1:x}"
    names = [wants(uuid, time=f"{number:016x}", space=elsewhere) for number in range(count)]
    with squatting(mallory.uid, *names):
        said = f"{count} runs ahead, the first of" if count > 1 else "1 run ahead, of"
        assert at_ease(gpus, minutes=2) == [f"{said} {mallory.name}"]


def test_a_ticket_for_a_gpu_that_does_not_exist_holds_nobody_up_for_long(simulated, mallory, at_ease):
    """Its process and its moment are real ones."""
    gpus = simulated(Device())
    names = [wants(uuid, time="{time}", count="2") for uuid in (*gpus.uuids(), "GPU-none")]
    with squatting(mallory.uid, *names):
        assert at_ease(gpus, minutes=2) == [f"1 run ahead, of {mallory.name}"]


def test_the_tickets_of_another_account_do_not_change_mine(simulated, ada, mallory):
    gpus = simulated(Device(), Device())
    first, second = gpus.uuids()
    with holding(gpus, gpus=2, run="theirs", uid=ada.uid), waiting(gpus, gpus=2, uid=ada.uid) as run:
        run.hears()
        mine = next(each for each in registry.read().tickets if set(gpus.uuids()) <= each.usable)
        key = f"{mine.time:016x}-{mine.pid}-2-{mine.namespace:x}"
        names = [f"holdfast-gpu-wants/{key}/GPU-more".encode()]
        names += [f"holdfast-gpu-waits/{mine.time:016x}-{mine.pid}-{mine.namespace:x}/{mallory.name}".encode()]
        with squatting(mallory.uid, *names):
            found = [each for each in registry.read().tickets if each.time == mine.time and first in each.usable]
            of_hers = (frozenset([first, second]), ada.uid, "waiting")
            assert [(each.usable, each.uid, each.run) for each in found] == [of_hers]
            assert [each["user"] for each in inventory(gpus)["queue"]] == [ada.name]


@pytest.mark.parametrize("is_full", [False, True])
def test_who_holds_all_gpus_for_nothing_is_named_by_the_kernel(simulated, ada, mallory, is_full):
    """Any account can hold a lease, as it can use a GPU without one. It does so under its own name."""
    gpus = simulated(Device(), Device())
    names = [f"holdfast-gpu/{each}".encode() for each in gpus.uuids()]
    names += [f"holdfast-gpu-of/{mark(each)}/1/hers_1".encode() for each in gpus.uuids()]
    names += [f"holdfast-gpu-of/{mark(each)}/{ada.uid}/1/hers_1".encode() for each in gpus.uuids()]
    hers = squatting(mallory.uid, names[1], names[3], names[5], is_full=is_full)
    with waiting(gpus, uid=ada.uid) as run:
        assert run.has()[1] == tuple(gpus.uuids()[:1])
        with hers, waiting(gpus, uid=ada.uid, gpus=2) as other:
            assert said_of(other).split("; ") == [
                f"GPU 0 is held by the run waiting of {ada.name}",
                f"GPU 1 is held by the run hers_1 of {mallory.name}",
            ]
            lease = inventory(gpus)["devices"][1]["lease"]
            assert lease == {"uid": mallory.uid, "user": mallory.name, "run": "hers_1", "pid": None}
    with squatting(mallory.uid, names[0], is_full=is_full), waiting(gpus, uid=ada.uid, gpus=2) as other:
        assert said_of(other) == f"GPU 0 is held by a process of {mallory.name}"


def test_nobody_puts_a_name_on_the_lease_of_another_account(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    names = [f"holdfast-gpu-of/{mark(uuid)}/{each}".encode() for each in ("1/a", "1/z", f"{mallory.uid}/1/a", "0/1/zz")]
    early, late = names, [each + b"b" for each in names]
    with squatting(mallory.uid, *early), holding(gpus, run="mine_1", uid=ada.uid) as held:
        with squatting(mallory.uid, *late), waiting(gpus, uid=ada.uid) as run:
            assert said_of(run) == f"GPU 0 is held by the run mine_1 of {ada.name}"
        lease = inventory(gpus)["devices"][0]["lease"]
        assert lease == {"uid": ada.uid, "user": ada.name, "run": "mine_1", "pid": held.guardian}


def test_what_a_lease_says_of_its_run_is_a_name_or_nothing(simulated, ada, mallory):
    gpus = simulated(Device())
    (uuid,) = gpus.uuids()
    runs = ("x\x1b[2J", "x\nGPU 1 is free", "free; GPU 1 is held by the run y of root", "\u202eoof", "a\rb")
    names = [f"holdfast-gpu-of/{mark(uuid)}/{pid}/{run}" for pid in ("0", "0/0") for run in runs]
    names = [f"holdfast-gpu/{uuid}", *names]
    with squatting(mallory.uid, *(each.encode() for each in names)), waiting(gpus, uid=ada.uid) as other:
        assert said_of(other) == f"GPU 0 is held by a process of {mallory.name}"


def test_a_lease_that_the_system_does_not_list_is_tried_at_the_pace_of_the_others(
    simulated, mallory, at_ease, monkeypatch
):
    gpus, looks = simulated(Device()), list[bytes]()
    (uuid,) = gpus.uuids()

    def lists_none(prefix: bytes) -> list[BoundSocket]:
        looks.append(prefix)
        return []

    monkeypatch.setattr(registry, "bound", lists_none)
    starved = pytest.raises(AssertionError, match="starved: GPU 0 is held by another run")
    with squatting(mallory.uid, b"holdfast-gpu/" + uuid.encode()), starved:
        at_ease(gpus, minutes=1)
    assert len(looks) < 60 / 0.25 + 10
