"""Bars, and when one is met."""

from __future__ import annotations

import pytest
from measuring import Figures, one
from results import Bar, Line, Table, Verdict, lines, ratio, verdict

NOT_THERE = Figures((), "could not be installed")


def table(ours: Figures, other: Figures, bar: Bar | None, is_peer: bool = True) -> Table:
    return Table("", "ms", 1000, Line("ours", ours), (Line("other", other, bar, is_peer),))


@pytest.mark.parametrize(
    ("bar", "value", "expected"),
    [
        (Bar(0.4), 0.39, Verdict.MET),
        (Bar(0.4), 0.4, Verdict.MET),
        (Bar(0.4), 0.41, Verdict.MISSED),
        (Bar(3, at_most=False), 3.1, Verdict.MET),
        (Bar(3, at_most=False), 3, Verdict.MET),
        (Bar(3, at_most=False), 2.9, Verdict.MISSED),
    ],
)
def test_a_bar_is_met_up_to_its_limit_and_missed_beyond(bar, value, expected):
    assert bar.verdict(value) is expected


def test_the_ratio_is_of_the_medians():
    found = table(Figures((1.0, 2.0, 90.0)), Figures((4.0, 4.0, 5.0)), None)
    assert ratio(found, found.others[0]) == 0.5


def test_a_bar_on_the_line_of_another_judges_the_ratio():
    found = table(one(3.0), one(10.0), Bar(0.3))
    assert verdict(found, found.others[0]) is Verdict.MET


def test_a_bar_on_our_own_line_judges_the_figure_in_the_unit_of_the_table():
    found = Table("", "% of a core", 100, Line("both", one(0.02), Bar(1.0)))
    assert verdict(found, found.ours) is Verdict.MISSED


@pytest.mark.parametrize(("ours", "other"), [(one(1.0), NOT_THERE), (NOT_THERE, one(1.0)), (one(1.0), one(0.0))])
def test_what_is_missing_is_never_met(ours, other):
    found = table(ours, other, Bar(1000))
    assert ratio(found, found.others[0]) is None
    assert verdict(found, found.others[0]) is Verdict.UNKNOWN


def test_our_own_figure_that_is_missing_is_not_met_either():
    found = Table("", "MB", 1, Line("both", NOT_THERE, Bar(40)))
    assert verdict(found, found.ours) is Verdict.UNKNOWN


def test_another_figure_of_our_own_is_not_compared():
    found = table(one(1.0), one(2.0), None, is_peer=False)
    assert ratio(found, found.others[0]) is None


def test_lines_have_the_order_of_the_names_and_know_which_are_ours():
    figures = {"b": one(2.0), "a": one(1.0)}
    assert lines({"a": None, "b": Bar(2)}, figures, own=("a",)) == (
        Line("a", one(1.0), None, False),
        Line("b", one(2.0), Bar(2), True),
    )
