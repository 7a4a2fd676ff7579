"""Metrics, sizes and durations as people read them."""

from __future__ import annotations

from holdfast.presenting.lines import metric_text


def test_metrics_are_short() -> None:
    values = [0.123456789, 3, "x", [1, 2], True, float("nan"), None]
    assert [metric_text(value) for value in values] == ["0.12346", "3", "x", "[2 values]", "True", "nan", ""]
