"""The verdict as a table: what was known, how the run ended, what was seen, and the verdict."""

from __future__ import annotations

import tracemalloc

import pytest

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.gpu_facts import NOTHING
from holdfast.farside.gpu.judge import case, reasons
from holdfast.farside.gpu.judge.evidence import work
from holdfast.farside.gpu.judge.reasons import DeviceUse
from holdfast.farside.gpu.judge.verdict import judge
from holdfast.farside.gpu.samples import Row
from kit.gpu_values import ASKED, GIB, device, end, facts, holding, leasing, row, samples, uuid, working
from kit.gpu_verdicts import CASES, MIG, TEN


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_judged_as_the_table_says_with_a_sentence_and_a_remedy_without_blanks(name):
    known, ended, seen, state, reason = CASES[name]
    found = judge(known, ended, seen)
    assert (found.state, found.reason) == (state, reason), found.sentence
    assert found.sentence and "%(" not in found.sentence + found.remedy
    assert bool(found.remedy) == (found.reason not in (reasons.OK, reasons.NOT_ASKED))
    assert "  " not in found.sentence and ".." not in found.sentence


def test_every_reason_is_given_to_some_run():
    assert {each.reason for each in CASES.values()} == set(reasons.REASONS)
    assert {each.state for each in CASES.values()} == set(reasons.STATES)


@pytest.mark.parametrize(
    ("visible", "hides"),
    [
        *[("", True), ("-1", True), ("NoDevFiles", True), ("2", True), ("none", True), ("-1,0", True), (",0", True)],
        *[("GPU-ffffffff", True), ("GPU-0000000", True), (MIG, True), ("all", True), (None, False)],
        *[("0", False), (" 1", False), ("1,0", False), ("0,-1", False), ("0,5", False), (uuid(1), False)],
        *[("GPU-00000001", False), (f"{uuid(0)},{uuid(1)}", False)],
    ],
)
def test_what_hides_the_devices_is_told_from_what_chooses_among_them(visible, hides):
    known = facts(device(0), device(1), visible=visible)
    found = judge(known, TEN, samples(*[[row(0), row(1)]] * 10))
    assert found.reason == (reasons.HIDDEN if hides else reasons.UNTOUCHED)


@pytest.mark.parametrize("visible", [MIG, "MIG-" + uuid(0) + "/1/0", "0"])
def test_an_instance_of_mig_is_no_name_that_hides(visible):
    known = facts(device(mig=True), visible=visible)
    assert judge(known, TEN, samples(*[[row(0, None)]] * 10)).reason != reasons.HIDDEN


def test_what_is_said_of_use_names_device_mean_peak_and_first_use():
    seen = samples(*[[row()]] * 3, *[[working(percent=100)]] * 7)
    found = judge(leasing(1), end(10), seen)
    assert "Tesla K80 (GPU-00000000), 70 % mean, 8.0 GiB" in found.sentence
    assert found.evidence == "utilisation" and found.waited == pytest.approx(0.3)
    assert found.spells == ((0.0, 3.0),)
    (use,) = found.devices
    assert use == DeviceUse(0, uuid(0), "Tesla K80", 70.0, 8 * GIB, 4.0, 0.7, True)


def test_memory_that_was_only_held_is_no_first_use():
    idle, partly = (judge(*CASES[name][:3]) for name in ("idle", "two leased, one only held"))
    assert [(each.first_use, each.peak_memory) for each in idle.devices] == [(None, GIB)]
    assert [each.first_use for each in partly.devices] == [1.0, None]
    assert partly.sentence.endswith("Tesla K80 (GPU-00000001), not used.")


def test_of_many_devices_those_that_the_run_had_are_named():
    quiet = samples(*[[row(number) for number in range(4)]] * 10)
    leased = judge(leasing(2, 4), TEN, quiet).sentence
    assert leased == (
        "GPU NOT used: no process of the run opened a GPU in 10 looks; "
        "it had Tesla K80 (GPU-00000000) and Tesla K80 (GPU-00000001)."
    )
    visible = judge(facts(*map(device, range(4)), visible="3"), TEN, quiet).sentence
    assert visible.endswith("it had Tesla K80 (GPU-00000003).")


def early(place: int) -> float:
    return place + 0.1


def gap(place: int) -> float:
    return place if place < 16 else place + 300


@pytest.mark.parametrize(
    ("known", "seconds", "seen", "waited", "busy", "spells"),
    [
        (leasing(1), 6.1, samples(*[[row()]] * 5, at=early), 1.0, 0.0, ((0.0, 6.1),)),
        (leasing(1), 6.1, samples(*[[row()]] * 4, [working()], at=early), 4.1 / 6.1, 2 / 6.1, None),
        (leasing(1), 30, samples(*[[working()]] * 5, *[[row()]] * 5), 0.5, 0.5, ((5.0, 10.0),)),
        (facts(), 331, samples(*[[working()]] * 30, [holding()], at=gap), 1 / 31, 30 / 31, None),
    ],
    ids=[
        "the end of a script is waited for as long as it lasts",
        "spells and their share are of the same time",
        "unwatched time at the end is not idle time",
        "a gap between looks counts neither as work nor as waiting",
    ],
)
def test_how_much_of_the_time_was_waited(known, seconds, seen, waited, busy, spells):
    found = judge(known, end(seconds), seen)
    assert found.waited == pytest.approx(waited)
    assert found.devices[0].busy == pytest.approx(busy, abs=1e-3)
    assert spells is None or found.spells == spells


def test_a_machine_that_is_looked_at_ever_less_often_is_not_taken_for_idle():
    """Ten minutes of work, sampled each second, count less than hours, sampled every ten seconds."""
    times = [*range(1, 601), *range(602, 3601, 2), *range(3605, 21601, 5), *range(21610, 40001, 10)]
    work_, hold = [working()], [holding()]
    looks = [work_ if time > 3600 else hold for time in times]
    found = judge(facts(), end(40_000), samples(*looks, at=lambda place: float(times[place - 1])))
    assert found.reason == reasons.OK and found.waited == pytest.approx(0.09, abs=0.001)
    assert found.devices[0].mean == pytest.approx(67.3, abs=0.1)


def test_no_verdict_suggests_to_restart_a_machine_that_slept():
    found = judge(leasing(1), end(10_830), samples(*[[row()]] * 30, at=lambda place: place + 10_800.0 * (place > 20)))
    assert "2 h 59 min of the 3 h" in found.sentence
    assert found.remedy.startswith("Keep the machine from sleeping")


def test_two_weeks_on_eight_gpus_are_judged_in_one_pass(monkeypatch):
    """Each row is weighed once, whatever the verdict; no copies are kept."""
    weighed = []

    def count(row: Row, part: GpuDevice, attributed: bool) -> tuple[int, str]:
        weighed.append(row.number)
        return work(row, part, attributed)

    monkeypatch.setattr(case, "work", count)
    looks = [[working(number) if place % 3 else holding(number) for number in range(8)] for place in range(500)]
    seen = samples(*looks)
    tracemalloc.start()
    found = judge(leasing(8), end(500), seen)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.reason == reasons.OK and len(weighed) == 8 * 500
    assert peak < 8 * 500 * 100  # a row alone has 136 bytes and more


def test_of_mig_it_is_not_said_how_much_of_the_time_it_waited():
    found = judge(*CASES["MIG"][:3])
    assert (found.waited, found.spells, found.evidence) == (None, (), "memory")
    assert "A100 (GPU-00000000), 1.0 GiB peak" in found.sentence


def test_a_device_of_which_only_the_samples_know_is_judged_too():
    seen = samples(*[[working()]] * 5, devices=(GpuDevice(0, uuid(0), "Tesla K80", 12 * GIB),))
    assert judge(NOTHING._replace(request=ASKED), end(5), seen).reason == reasons.OK


def test_a_script_that_failed_and_said_that_its_device_was_lost_is_believed():
    found = judge(leasing(1), end(10.4, 1, said=(reasons.LOST,)), samples(*[[working()]] * 10))
    assert (found.state, found.reason) == (reasons.PARTLY_USED, reasons.LOST)
