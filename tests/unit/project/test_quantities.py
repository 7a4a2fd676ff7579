"""Sizes and durations as people write them and as pages show them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.project.quantities import format_duration, format_size, parse_duration, parse_size, short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.0, "0.0s"), (0.004, "0.0s"), (0.03, "0.03s"), (0.096, "0.1s"), (59.94, "59.9s")),
        *((59.96, "1m 00s"), (3599.7, "1h 00m"), (7500, "2h 05m"), (273600, "3d 4h"), (None, "")),
    ],
)
def test_durations_are_short_for_people(seconds, text):
    assert short_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("45s", 45), ("10m", 600), ("1h30m", 5400)),
        *(("2d", 172_800), ("1H 30M", 5400), ("1.5h", 5400), ("0", 0)),
    ],
)
def test_durations_are_read_as_people_write_them(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "soon", "-5", "1:30", "5w", "30m1h", "1h1h", "h", "9" * 400, "٣s", "nan"])
def test_what_is_not_a_duration_says_how_to_write_one(text):
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert caught.value.hint


@settings(max_examples=40)
@given(st.integers(0, 3650 * 86_400 * 1000))
def test_a_formatted_duration_reads_as_the_same(thousandths):
    assert round(parse_duration(format_duration(thousandths / 1000)) * 1000) == thousandths


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90, "1m30s"), (5400, "1h30m"), (4.892, "4.892s"), (86_400, "1d")]
)
def test_durations_are_written_short(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_549, "1.5 kB")),
        *((99_949, "99.9 kB"), (99_950, "100 kB"), (999_499, "999 kB"), (999_500, "1.0 MB")),
        *((250_000_000, "250 MB"), (25_000_000_000, "25.0 GB")),
        *((999_500_000_000, "1.0 TB"), (4_200_000_000_000_000, "4200.0 TB")),
    ],
)
def test_a_size_has_three_digits_and_the_units_of_the_si(count, text):
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("0", 0), ("500B", 500), ("1.5kB", 1500), ("500MB", 500_000_000)),
        *(("20 GB", 20_000_000_000), ("1GiB", 1 << 30), ("2t", 2_000_000_000_000)),
    ],
)
def test_a_size_is_read_as_people_write_it(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 PB", "1.2.3", "5i", "ten"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["10", "1.5", " 500 "])
def test_a_size_without_a_unit_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=rf"has no unit.\nWrite it like {text.strip()}GB"):
        parse_size(text)
