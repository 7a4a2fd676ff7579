"""GPUs that several users share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import profiles
from measuring import FailedError, Figures, one
from results import Bar, Line, Row, Table
from session import Session

from kit.accounts import Account, premises
from kit.leasing import Had, holding, overtaken, shared, storm, waiting
from kit.nvml import Device, Simulated

NAME = "leases"
TITLE = "200 runs of 4 users on 4 GPUs, and the death of a holder"
TOOLS: tuple[str, ...] = ("holdfast",)

_USERS, _GPUS, _PROCESSES = 4, 4, 10
_HOW = """\
{runs} runs of {users} accounts, {waiting} of them at a time, lease 1, 2, 3 or all of {gpus} simulated GPUs for 5 to
30 ms each. Each run records when it had which GPU, on a shared clock, and the records are compared afterwards. A
run is overtaken if a later run, which arrived when the first was known to wait, got its GPUs while the first went
on waiting. A run that never gets any is starved. Then, {rounds} times, the guardian and the supervisor of a run
that holds a GPU are killed with SIGKILL while another run waits for it. That run asks the driver before it takes
the GPU."""


def measure(session: Session) -> Row:
    runs, rounds = max(1, session.amount(100) // 20), session.rounds(20)
    with _users() as (folder, users):
        gpus = Simulated(folder / "gpus", [Device()] * _GPUS)
        session.say(f"{runs * _PROCESSES * _USERS} runs")
        found = storm(folder, gpus, users, _PROCESSES, runs)
        session.say(f"{rounds} deaths")
        single = Simulated(folder / "single", [Device()])
        deaths = Figures(tuple(_death(single) for _ in range(rounds)))
    expected = runs * _PROCESSES * _USERS
    how = _HOW.format(runs=expected, users=_USERS, waiting=_PROCESSES * _USERS, gpus=_GPUS, rounds=rounds)
    return Row(NAME, TITLE, how, (_counted(found, expected), _waited(found), _freed(deaths)))


def profile(session: Session) -> str:
    return profiles.program_profile(session.place("leases-profile"), "lease_many_times.py")


@contextlib.contextmanager
def _users() -> Iterator[tuple[Path, list[Account]]]:
    with premises() as folder:
        made = [Account.create(folder) for _ in range(_USERS)]
        try:
            yield folder, made
        finally:
            for account in made:
                account.remove()


def _death(gpus: Simulated) -> float:
    """Seconds from the signal until the waiting run has the GPU."""
    with holding(gpus, run="held") as held, waiting(gpus, run="next") as other:
        other.hears()
        killed = held.kill()
        had, uuids = other.has()
    if uuids != tuple(gpus.uuids()):
        raise FailedError(f"the one who waited has {uuids}")
    return had - killed


def _counted(found: list[Had], expected: int) -> Table:
    ours = Line("times that two runs had one GPU", one(len(shared(found))), Bar(0))
    others = (
        Line("runs that were overtaken", one(len(overtaken(found))), is_peer=False),
        Line("runs that were starved", one(expected - len(found)), is_peer=False),
        Line("runs that had to wait", one(sum(each.seen is not None for each in found)), is_peer=False),
    )
    return Table("Faults", "in all", 1, ours, others)


def _waited(found: list[Had]) -> Table:
    seconds = Figures(tuple(each.begin - each.asked for each in found))
    longest = Line("the longest", one(seconds.most), is_peer=False)
    return Table("Wait for GPUs", "s", 1, Line("the median run", one(seconds.median)), (longest,))


def _freed(deaths: Figures) -> Table:
    worst = Line("the worst", one(deaths.most), Bar(2))
    return Table("From the death of a holder until another has its GPU", "s", 1, worst, (_median(deaths),))


def _median(deaths: Figures) -> Line:
    return Line("the median", one(deaths.median), is_peer=False)
