"""How long the GPUs have been idle, and when that is unknown."""

from __future__ import annotations

import pytest

from holdfast.farside.gpu.judge.evidence import idle_for, waiting
from holdfast.farside.gpu.judge.verdict import judge
from holdfast.farside.gpu.samples import Samples
from kit.gpu_values import GIB, START, device, end, facts, holding, leasing, row, samples, strange, working

QUIET, BUSY, HELD = [row()], [working()], [holding()]
UNMATCHED = [row(0, 60, unmatched=1, memory=GIB)]
MIG = [row(0, None, own=(1,), own_memory=GIB, own_utilisation=None)]


def gap(place: int) -> float:
    return float(place if place < 6 else place + 60)


SLEPT = samples(*[[working(percent=90)]] * 20, *[QUIET] * 10, at=lambda place: place + 7200.0 * (place > 20))
"""A run that worked until the machine slept was not idle during the sleep."""
END_OF_A_LONG_FILE = samples(*[QUIET] * 10, at=lambda place: 50_000 + 10.0 * place)._replace(began=None, devices=())
"""A frequent reader has only the last lines: neither the start nor the list of devices."""


@pytest.mark.parametrize(
    ("known", "seen", "now", "seconds"),
    [
        (facts(), samples(*[QUIET] * 10), 10.5, 10.5),
        (facts(), samples(*[HELD] * 10), 10.0, 10.0),
        (facts(), samples(*[BUSY] * 4, *[QUIET] * 6), 10.5, 6.5),
        (facts(), samples(*[QUIET] * 9, BUSY), 10.5, 0.5),
        (facts(), samples(*[[strange()]] * 10), 10.0, 10.0),
        (leasing(2), samples(*[[row(), working(1)]] * 10), 10.0, 0.0),
        (leasing(1, 2), samples(*[[row(), row(1, 90, others=(7,))]] * 10), 10.0, 10.0),
        (leasing(1), samples(*[UNMATCHED] * 10), 10.0, 0.0),
        (facts(), samples(*[QUIET] * 5, *[QUIET] * 5, at=gap), 70.0, 4.0),
        (facts(), samples(*[BUSY] * 5, *[QUIET] * 5, at=gap), 70.0, 4.0),
        (facts(), samples(*[UNMATCHED] * 5, *[QUIET] * 5, at=gap), 70.0, 4.0),
        (facts(), samples(*[QUIET] * 5, at=lambda place: place + 60.0), 66.0, 5.0),
        (facts(), samples(*[UNMATCHED] * 5, *[QUIET] * 5), 10.0, 5.0),
        (facts(), SLEPT, 7230.0, 9.0),
        (facts(), END_OF_A_LONG_FILE, 50_100.0, 90.0),
    ],
)
def test_the_time_without_work_until_now(known, seen, now, seconds):
    assert idle_for(seen, known, START, START + now) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("known", "seen", "now"),
    [
        (facts(), Samples(), 10.0),
        (facts(), samples(), 10.0),
        (facts(), samples(*[QUIET] * 5), 60.0),
        (facts(), samples(*[UNMATCHED] * 10), 10.0),
        (facts(), samples(*[[row(0, 40)]] * 10), 10.0),
        (facts(device(mig=True)), samples(*[MIG] * 10), 10.0),
        (facts(), samples(*[[]] * 10), 10.0),
        (leasing(2), samples(*[[row(), row(1, 40, unmatched=1, others=(7,))]] * 10), 10.0),
    ],
    ids=["no samples", "no looks", "none lately", "unmatched", "unnamed", "MIG", "no device", "one of two"],
)
def test_it_is_not_said_if_it_cannot_be_known(known, seen, now):
    assert idle_for(seen, known, START, START + now) is None


def test_spells_are_the_longest_in_order_and_short_ones_are_left_out():
    looks = []
    for length in range(1, 26):
        looks += [QUIET] * length + [BUSY]
    found = judge(facts(), end(len(looks)), samples(*looks))
    assert len(found.spells) == 20 and list(found.spells) == sorted(found.spells)
    assert [round(stop - begin) for begin, stop in found.spells] == list(range(6, 26))
    assert found.waited == pytest.approx(sum(range(1, 26)) / len(looks))


def test_of_a_run_without_looks_nothing_is_said():
    assert waiting((), {0: bytearray()}, frozenset([0]), START) == (None, ())
