"""When the sampler looks, what it makes of a look, and what it writes when devices or the disk fail."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.gpu import samples
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.samples import Loss, Row, read
from holdfast.farside.gpu.watch.process_owner import OTHER, OWN, UNMATCHED, Belonging
from holdfast.farside.gpu.watch.sampler import LOOKS_BETWEEN, Lines, Sampler, Schedule, make_row, watch
from holdfast.farside.gpu.watch.source import DeviceLook, Lost, Source, Unusable


class Whose(Belonging):
    """Knows the owner of each process."""

    def __init__(self, known: Mapping[int, str]) -> None:
        super().__init__(1, "run")
        self.answers = known

    def of(self, pid: int) -> str:
        return self.answers.get(pid, UNMATCHED)


WHOSE = Whose({11: OWN, 12: OWN, 21: OTHER})


class Made(Source):
    """A source with prepared answers: a look, or why there is none."""

    def __init__(self, *answers: DeviceLook | str, problem: str = "") -> None:
        self.answers, self.problem = list(answers), problem
        self.looks: list[tuple[int, bool]] = []

    def open(self) -> None:
        if self.problem:
            raise Unusable(self.problem)

    def devices(self) -> tuple[GpuDevice, ...]:
        return tuple(GpuDevice(number, f"GPU-{number}", "K80", 1) for number in range(len(self.answers)))

    def look(self, number: int, is_asked: bool) -> DeviceLook:
        self.looks.append((number, is_asked))
        answer = self.answers[number]
        if isinstance(answer, str):
            raise Lost(answer)
        return answer


EMPTY = Row(0, None, None, None, None, 0, 0, (), (), 0)
UNKNOWN = Row(0, None, None, None, None, None, None, (), (), 0)


@pytest.mark.parametrize(
    ("look", "row"),
    [
        (
            DeviceLook(80, 900, 60.0, 55, {11: 100, 12: 50, 21: 300, 99: 7}, {11: 30, 12: 20, 21: 10, 99: 5}),
            Row(0, 80, 900, 60.0, 55, 150, 50, (11, 12), (21,), 1)._replace(
                processes=((11, 100, 30), (12, 50, 20), (21, 300, 10), (99, 7, 5))
            ),
        ),
        (DeviceLook(processes={}, shares={}), EMPTY),
        (DeviceLook(utilisation=9), UNKNOWN._replace(utilisation=9)),
        (DeviceLook(processes={11: None}), UNKNOWN._replace(own=(11,), processes=((11, None, None),))),
        (
            DeviceLook(processes={11: None, 12: 5}),
            UNKNOWN._replace(own=(11, 12), own_memory=5, processes=((11, None, None), (12, 5, None))),
        ),
        (DeviceLook(processes={}, shares={11: 40, 99: 10}), EMPTY._replace(own_utilisation=40)),
        (DeviceLook(shares={11: 70, 12: 60}), UNKNOWN._replace(own_utilisation=100)),
    ],
    ids=[
        "the run's, others', and unknown ones",
        "no process is on it, which is not unknown",
        "without lists all is unknown",
        "memory that the driver does not know is unknown",
        "memory that it knows in part is that part",
        "what has computed and is gone counts as computing and holds nothing",
        "no device computes more than all it can",
    ],
)
def test_a_row_tells_the_runs_processes_from_others(look, row):
    assert make_row(0, look, WHOSE) == row


def test_looks_come_once_a_second_and_less_often_later():
    schedule = Schedule(1000.0)
    dues = []
    for _ in range(602):
        assert schedule.advance(schedule.due + 0.01) == 0
        dues.append(schedule.due - 1000.0)
    assert (dues[0], dues[598], dues[599], dues[600], dues[601]) == (1.0, 599.0, 600.0, 602.0, 604.0)


def test_a_late_look_is_skipped_and_counted_and_one_that_was_asked_for_moves_no_other():
    schedule = Schedule(0.0)
    seen = [(schedule.advance(now), schedule.due) for now in (3.5, 4.0, 4.4)]
    assert seen == [(3, 4.0), (0, 5.0), (0, 5.0)]


def test_a_lost_device_is_said_once_asked_now_and_then_and_found(tmp_path):
    origin = Made("GPU is lost", DeviceLook(processes={}))
    sampler = Sampler(origin, WHOSE, Lines(str(tmp_path / "lines")))
    for moment in range(2 * LOOKS_BETWEEN):
        sampler.look(float(moment), False)
    assert [number for number, _ in origin.looks].count(0) == 2
    known = read((tmp_path / "lines").read_bytes())
    assert known.losses == (Loss(0.0, 0, "GPU is lost", None),)
    assert [[row.number for row in tick.rows] for tick in known.ticks] == [[1]] * 2 * LOOKS_BETWEEN
    origin.answers[0] = DeviceLook(processes={})
    sampler.look(2.0 * LOOKS_BETWEEN, True)
    known = read((tmp_path / "lines").read_bytes())
    assert known.losses == (Loss(0.0, 0, "GPU is lost", 20.0),)
    assert [row.number for row in known.ticks[-1].rows] == [0, 1]
    assert known.devices == origin.devices(), "it may be known better now"
    assert origin.looks[-1] == (1, True)


def test_a_driver_that_cannot_be_used_or_has_no_devices_ends_the_watch(tmp_path):
    watch(Made(DeviceLook(), problem="Driver Not Loaded"), WHOSE, Lines(str(tmp_path / "lines")))
    assert read((tmp_path / "lines").read_bytes()).problem == "Driver Not Loaded"
    watch(Made(), WHOSE, Lines(str(tmp_path / "none")))
    assert (tmp_path / "none").read_text() == '{"devices":[]}\n'


def test_when_all_are_lost_there_is_nothing_to_say_and_no_folder_is_no_reason_to_fail(tmp_path):
    sampler = Sampler(Made("gone"), WHOSE, Lines(str(tmp_path / "lines")))
    sampler.look(1.0, False)
    sampler.look(2.0, False)
    assert len((tmp_path / "lines").read_bytes().splitlines()) == 1
    assert not Lines(str(tmp_path / "none" / "lines")).write(b"x\n")


class Clock:
    """Stands in for time and for waiting; `asked` are the waits that a signal ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: int = -1) -> None:
        self.now, self.waits, self.asked = 50.0, 0, asked
        self.clock: Any = SimpleNamespace(now=lambda: 1000.0 + self.now)
        monkeypatch.setattr("holdfast.farside.gpu.watch.sampler.time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr("holdfast.farside.gpu.watch.sampler.signal", SimpleNamespace(sigtimedwait=self.wait))

    def wait(self, _: object, seconds: float) -> object:
        self.waits += 1
        if self.waits == self.asked:
            self.now += seconds / 2
            return object()
        self.now += seconds
        return None


class Slow(Made):
    """Looks that take this many seconds each; then the process ends."""

    def __init__(self, clock: Clock, *seconds: float) -> None:
        super().__init__(DeviceLook(processes={}))
        self.clock, self.seconds = clock, list(seconds)

    def look(self, number: int, is_asked: bool) -> DeviceLook:
        if not self.seconds:
            raise SystemExit
        self.clock.now += self.seconds.pop(0)
        return super().look(number, is_asked)


def test_looks_that_a_slow_driver_left_no_time_for_are_counted_before_the_next(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    with pytest.raises(SystemExit):
        watch(Slow(clock, 0.1, 2.5, 0.1), WHOSE, Lines(str(tmp_path / "lines")), clock.clock)
    lines = (tmp_path / "lines").read_bytes()
    assert [tick.time for tick in read(lines).ticks] == [1050.0, 1051.0, 1054.0]
    assert read(lines).skipped == 2
    assert [b"skipped" in line for line in lines.splitlines()] == [False, False, False, True, False]


def test_a_look_that_is_asked_for_is_told_so(tmp_path, monkeypatch):
    slow = Slow(Clock(monkeypatch, asked=2), 0.0, 0.0, 0.0, 0.0)
    with pytest.raises(SystemExit):
        watch(slow, WHOSE, Lines(str(tmp_path / "lines")), slow.clock.clock)
    assert slow.looks == [(0, False), (0, False), (0, True), (0, False)]
    assert [tick.time for tick in read((tmp_path / "lines").read_bytes()).ticks] == [1050.0, 1051.0, 1051.5, 1052.0]


class Disk:
    """A disk with `room` bytes."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.write = room, os.write
        monkeypatch.setattr("holdfast.farside.gpu.watch.sampler.os.write", self.take)

    def take(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = self.write(descriptor, data[: self.room])
        self.room -= taken
        return taken


def test_on_a_full_disk_looks_are_left_out_and_what_is_said_once_is_said_later(tmp_path, monkeypatch):
    lines = Lines(str(tmp_path / "lines"))
    disk = Disk(0, monkeypatch)
    assert not lines.write(samples.encode_start(1.0, "nvml"), is_owed=True)
    assert not lines.write(samples.encode_skipped(2.0, 1))
    disk.room = 30
    assert not lines.write(samples.encode_skipped(3.0, 1))
    assert (tmp_path / "lines").stat().st_size == 30
    disk.room = 1000
    assert lines.write(samples.encode_skipped(4.0, 5))
    assert lines.write(samples.encode_skipped(5.0, 1))
    known = read((tmp_path / "lines").read_bytes())
    assert (known.began, known.skipped) == (1.0, 6)
