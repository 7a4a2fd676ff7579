from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.project.sizes import format_size, parse_size


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
