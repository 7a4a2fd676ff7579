"""Row 9: every reader of bytes that another process wrote is total. Whatever they are, it returns a value or refuses
them with an error that has a remedy."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kit.far_readers import far_readers
from kit.fuzzing import Reader, Tally, cases, crash_of
from kit.near_readers import near_readers
from kit.project_readers import project_readers
from kit.soaking import seeds

TYPES, BYTES = 20, 8
LEAST = 20
"""Cases of each reader."""


def attacked(readers: Iterable[Reader], seed: int = 1, tally: Tally | None = None, times: int = 1) -> Tally:
    found = Tally() if tally is None else tally
    for reader in readers:
        for data in cases(reader, seed=seed, types=TYPES * times, bytes_=BYTES * times):
            found.take(reader.name, crash_of(reader, data))
    return found


def assert_total(readers: Iterable[Reader], least: int, times: int = 1) -> None:
    """No crash of at least so many readers."""
    tally = attacked(readers, times=times)
    assert not tally.crashes, f"\n{tally}"
    assert len(tally.cases) >= least and min(tally.cases.values()) >= LEAST, tally.cases


def test_no_reader_of_the_laptop_crashes_whatever_it_is_given(tmp_path):
    assert_total(near_readers(tmp_path), least=70, times=6)


def test_no_reader_of_a_projects_files_crashes_whatever_it_is_given(tmp_path):
    assert_total(project_readers(tmp_path), least=10)


def test_no_reader_of_a_host_crashes_whatever_it_is_given(tmp_path):
    assert_total(far_readers(tmp_path), least=38)


@pytest.mark.soak
@pytest.mark.time_limit(3000, "reads odd bytes for forty minutes")
def test_no_reader_crashes_in_forty_minutes(request, tmp_path, capsys):
    tally = Tally()
    for seed in seeds(request, 2400):
        readers = (*near_readers(tmp_path / f"n{seed}"), *project_readers(tmp_path / f"p{seed}"))
        attacked((*readers, *far_readers(tmp_path / f"f{seed}")), seed, tally)
    with capsys.disabled():
        print(f"\nForeign bytes: {tally}")
    assert not tally.crashes
