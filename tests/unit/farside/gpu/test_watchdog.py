"""When a run is ended because its GPUs are idle, when a silent run is reported, and what a look costs in a run of
weeks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.farside.gpu.gpu_facts import GpuFacts
from holdfast.farside.gpu.judge.evidence import idle_for
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Row, Samples, Tick, encode_devices, encode_start, encode_tick, period
from holdfast.farside.gpu.samples import read as read_samples
from holdfast.farside.gpu.watch import watchdog
from holdfast.farside.gpu.watch.watchdog import GpuWatchdog
from kit.gpu_values import GIB, START, facts, holding, row, samples, working

QUIET, BUSY, HELD = [row()], [working()], [holding()]
MIG = [row(0, None, own_utilisation=None)]
MIG_OTHERS = [row(0, None, own_utilisation=None, others=(7,))]
IDLE_LIMIT = 30.0


class Watched:
    """A run whose clock stops until `go` moves it, and whose sampler looks on command."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, known: GpuFacts) -> None:
        self.now, self.notes, self.folder = START, list[str](), folder
        clock: Any = SimpleNamespace(now=lambda: self.now, monotonic=lambda: self.now)
        monkeypatch.setattr(watchdog, "time", clock)
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "gpu.jsonl"
        self.file.write_bytes(encode_start(START, "nvml") + encode_devices(samples([row()]).devices))
        self.output = folder / "driver_log"
        self.output.touch()
        self.dog = GpuWatchdog(str(folder), known, "run_1", self.notes.append, clock)

    def look(self, rows: Sequence[Row]) -> None:
        with self.file.open("ab") as target:
            target.write(encode_tick(Tick(self.now, tuple(rows))))

    def go(self, seconds: float, rows: Sequence[Row], each: float = 1.0) -> Any:
        """The sampler always sees the same. Returns what the watchdog says, if anything."""
        end = self.now + seconds
        while self.now < end:
            self.now += each
            self.look(rows)
            stop = self.dog.look()
            if stop is not None:
                return stop
        return None


def asking(**changes: Any) -> GpuFacts:
    return facts(request=GpuRequest(**{"asked": True, "by": "`--gpus 1`", "quiet_after": None, **changes}))


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`begin(stop_if_idle=30.0)`: a run with these options."""
    return lambda **asked: Watched(tmp_path / "run", monkeypatch, asking(**asked))


def test_a_run_whose_gpu_waits_is_ended_at_its_limit(begin):
    run = begin(stop_if_idle=IDLE_LIMIT)
    assert run.go(50, BUSY) is None
    stop = run.go(60, QUIET)
    assert (stop.cause, stop.detail) == ("gpu-idle", "It computed nothing for 30 seconds.")
    assert run.now - START == pytest.approx(50 + IDLE_LIMIT, abs=IDLE_LIMIT / 10 + 1)


def test_a_run_of_days_is_not_ended_for_a_single_look(begin):
    """One look a minute: it may have been between two of the run's steps."""
    run = begin(stop_if_idle=IDLE_LIMIT)
    run.now += 100_000
    assert run.go(600, BUSY, each=60) is None
    assert run.go(60, QUIET, each=60) is None
    assert run.go(600, BUSY, each=60) is None
    assert run.go(600, QUIET, each=60) is not None
    assert run.now - START == 100_000 + 1200 + 60 + 180


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([0.0, 3000.0, 100_000.0]),
    st.lists(
        st.tuples(st.sampled_from([QUIET, BUSY, HELD, MIG, MIG_OTHERS, []]), st.integers(1, 20)), min_size=1, max_size=5
    ),
)
def test_what_is_forgotten_changes_no_answer(tmp_path, age, spells):
    with pytest.MonkeyPatch.context() as patch:
        limit = 10 * period(age)
        known = asking(stop_if_idle=limit)
        run = Watched(tmp_path / "run", patch, known)
        run.now += age
        for rows, count in spells:
            for _ in range(count):
                run.now += period(age)
                run.look(rows)
                run.dog.due = run.now
                stop = run.dog.look()
                idle = idle_for(read_samples(run.file.read_bytes()), known, START, run.now)
                assert (stop is not None) == (idle is not None and idle >= limit)
                if stop is not None:
                    return


def test_a_look_costs_no_more_in_a_run_of_weeks(begin, monkeypatch):
    asked: list[Samples] = []

    def spy(found: Samples, *rest: Any) -> float | None:
        asked.append(found)
        return idle_for(found, *rest)

    monkeypatch.setattr(watchdog, "idle_for", spy)
    run = begin(stop_if_idle=600.0)
    with run.file.open("ab") as target:
        target.writelines(encode_tick(Tick(START + 1 + at, tuple(BUSY))) for at in range(3000))
    run.now += 3000
    assert run.dog.look() is None
    assert len(asked[-1].ticks) < 650
    whole = run.file.stat().st_size
    with run.file.open("r+b") as target:
        target.write(b"?" * whole)  # what was read is not read again
    run.go(60, HELD)
    assert (asked[-1].began, len(asked[-1].devices)) == (START, 1)
    assert [each.rows for each in asked[-1].ticks[-61:]] == [tuple(BUSY)] + [tuple(HELD)] * 60
    assert len(asked[-1].ticks) < 650


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, OverflowError, OSError, ZeroDivisionError])
def test_no_fault_ends_a_run(error, begin, monkeypatch):
    run = begin(stop_if_idle=IDLE_LIMIT)
    run.go(20, QUIET)

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(watchdog, "idle_for", fail)
        assert run.go(60, QUIET) is None
    assert run.go(10, QUIET).cause == "gpu-idle", "and the next look counts again"


def test_damaged_samples_are_left_out_and_those_that_cannot_be_read_end_nothing(begin):
    run = begin(stop_if_idle=IDLE_LIMIT)
    run.go(20, QUIET)
    with run.file.open("ab") as target:
        target.write(b'\xff{"t":"x","d":[["0"]]}\n{"t":1e999,"d":[]}\n[[[\n')
    assert run.go(30, QUIET).cause == "gpu-idle"
    run = begin(stop_if_idle=IDLE_LIMIT)
    run.file.unlink()
    run.file.mkdir()
    run.now += 100
    assert run.dog.look() is None
    assert run.notes == ["Whether the GPU works for this run cannot be judged here, so --stop-if-idle does not end it."]


def test_a_note_that_has_no_room_ends_nothing(begin):
    run = begin(quiet_after=20.0, stop_if_idle=IDLE_LIMIT)

    def full(text: str) -> None:
        raise OSError(28, "No space left on device")

    run.dog._note = full
    assert run.go(25, QUIET) is None
    assert run.go(60, QUIET).cause == "gpu-idle"


@pytest.mark.parametrize(
    ("asked", "before", "is_said"),
    [
        ({}, QUIET, False),
        ({}, [row(0, 90, others=(7,))], False),
        ({}, BUSY, True),
        ({}, HELD, True),
        ({}, [row(0, None, own=(4,), own_memory=GIB, own_utilisation=3)], True),
        ({"asked": True}, QUIET, True),
        ({"stop_if_idle": 3600.0}, QUIET, True),
    ],
    ids=["never", "a stranger", "computed", "held", "a part", "asked", "to be ended"],
)
def test_a_silence_is_told_of_a_run_that_is_meant_to_use_a_gpu_or_has_used_one(asked, before, is_said, begin):
    run = begin(**{"asked": False, "by": "", "quiet_after": 20.0, **asked})
    run.go(5, before)
    run.go(200, QUIET)
    assert [each.partition(".")[0] for each in run.notes] == ["No output and no GPU work for 20 seconds"] * is_said


def test_use_is_not_forgotten(begin):
    """Work of long ago is in no look that is still kept."""
    run = begin(asked=False, by="", quiet_after=20.0)
    run.go(5, BUSY)
    for _ in range(20):
        with run.output.open("a") as target:
            target.write("at work\n")
        run.go(10, QUIET)
    assert run.notes == []
    run.go(60, QUIET)
    assert len(run.notes) == 1
