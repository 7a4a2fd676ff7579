from __future__ import annotations

import pytest

from holdfast.project.sizes import format_size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_549, "1.5 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (250_000_000, "250 MB"),
        (25_000_000_000, "25.0 GB"),
        (999_500_000_000, "1.0 TB"),
        (4_200_000_000_000_000, "4200.0 TB"),
    ],
)
def test_a_size_has_three_digits_and_the_units_of_the_si(count: int, text: str) -> None:
    assert format_size(count) == text
