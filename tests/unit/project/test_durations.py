"""Durations as pages show them."""

from __future__ import annotations

import pytest

from holdfast.project.durations import short_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0s"),
        (0.004, "0.0s"),
        (0.03, "0.03s"),
        (0.096, "0.1s"),
        (59.94, "59.9s"),
        (59.96, "1m 00s"),
        (3599.7, "1h 00m"),
        (7500, "2h 05m"),
        (273600, "3d 4h"),
        (None, ""),
    ],
)
def test_durations_are_short_for_people(seconds, text):
    assert short_duration(seconds) == text
