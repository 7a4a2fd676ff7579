"""Rounds, medians, bars, and contenders that fail."""

from __future__ import annotations

import pytest
from measuring import Contender, FailedError, Figures, interleaved, one
from results import Bar, Line, Table, Verdict, ratio, verdict

pytestmark = pytest.mark.kit

NOT_THERE = Figures((), "could not be installed")


def test_every_round_measures_each_contender_in_the_same_order_and_those_that_warm_up_do_not_count():
    order: list[str] = []

    def contender(name: str) -> Contender:
        def measure() -> float:
            order.append(name)
            return float(len(order))

        return Contender(name, measure)

    found = interleaved([contender(name) for name in "ABC"], rounds=2, warm_up=1)
    assert "".join(order) == "ABCABCABC"
    assert found["A"].values == (4.0, 7.0)


def test_a_contender_that_fails_is_not_measured_again_and_the_others_go_on():
    tried: list[str] = []

    def fails() -> float:
        tried.append("once")
        raise FailedError("it broke")

    found = interleaved([Contender("broken", fails), Contender("sound", lambda: 2.0)], rounds=3, warm_up=0)
    assert found == {"broken": Figures((), "it broke"), "sound": Figures((2.0, 2.0, 2.0))}
    assert tried == ["once"]


def test_an_error_of_our_own_is_not_taken_for_a_contender_that_failed():
    with pytest.raises(ZeroDivisionError):
        interleaved([Contender("wrong", lambda: 1 / 0)], rounds=1)


def test_one_slow_round_moves_neither_the_median_nor_much_of_the_spread():
    figures = Figures((4.0, 1.0, 2.0, 100.0))
    assert (figures.median, figures.least, figures.most) == (3.0, 1.0, 100.0)
    assert Figures((8.0, 9.0, 10.0, 11.0, 12.0)).spread == pytest.approx(0.1)
    assert one(5.0).spread == Figures((0.0, 0.0, 0.0)).spread == 0.0


@pytest.mark.parametrize(
    ("ours", "other", "bar", "of_medians", "expected"),
    [
        (Figures((1.0, 2.0, 90.0)), Figures((4.0, 4.0, 5.0)), Bar(0.5), 0.5, Verdict.MET),
        (one(5.1), one(10.0), Bar(0.5), 0.51, Verdict.MISSED),
        (one(30.0), one(10.0), Bar(3, at_most=False), 3.0, Verdict.MET),
        (one(29.0), one(10.0), Bar(3, at_most=False), 2.9, Verdict.MISSED),
        (one(1.0), NOT_THERE, Bar(1000), None, Verdict.UNKNOWN),
        (NOT_THERE, one(1.0), Bar(1000), None, Verdict.UNKNOWN),
        (one(1.0), one(0.0), Bar(1000), None, Verdict.UNKNOWN),
    ],
)
def test_a_bar_is_met_up_to_its_limit_and_never_by_what_is_missing(ours, other, bar, of_medians, expected):
    found = Table("", "ms", 1000, Line("ours", ours), (Line("other", other, bar, True),))
    assert (ratio(found, found.others[0]), verdict(found, found.others[0])) == (of_medians, expected)


@pytest.mark.parametrize(("figure", "expected"), [(one(0.02), Verdict.MISSED), (NOT_THERE, Verdict.UNKNOWN)])
def test_a_bar_on_our_own_line_judges_the_figure_in_the_unit_of_the_table(figure, expected):
    found = Table("", "% of a core", 100, Line("both", figure, Bar(1.0)))
    assert verdict(found, found.ours) is expected
