"""Rounds, medians and what is done with a contender that fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from measuring import Contender, FailedError, Figures, interleaved, one


def recorder(order: list[str], name: str, values: list[float]) -> Contender:
    given = iter(values)

    def measure() -> float:
        order.append(name)
        return next(given)

    return Contender(name, measure)


def failing_at(call: int, value: float = 1.0) -> Callable[[], float]:
    calls = iter(range(100))

    def measure() -> float:
        if next(calls) == call:
            raise FailedError("it broke")
        return value

    return measure


def test_every_round_measures_each_contender_once_in_the_same_order():
    order: list[str] = []
    interleaved([recorder(order, name, [1.0] * 3) for name in "ABC"], rounds=2, warm_up=1)
    assert "".join(order) == "ABCABCABC"


def test_rounds_that_warm_up_do_not_count():
    found = interleaved([recorder([], "A", [100.0, 90.0, 3.0, 1.0, 2.0])], rounds=3, warm_up=2)
    assert found["A"].values == (3.0, 1.0, 2.0)


def test_a_contender_that_fails_has_a_problem_and_no_figures_and_the_others_go_on():
    broken = Contender("broken", failing_at(1))
    found = interleaved([broken, Contender("sound", lambda: 2.0)], rounds=3, warm_up=0)
    assert found == {"broken": Figures((), "it broke"), "sound": Figures((2.0, 2.0, 2.0))}


def test_a_contender_that_failed_is_not_measured_again():
    order: list[str] = []

    def measure() -> float:
        order.append("broken")
        raise FailedError("it broke")

    interleaved([Contender("broken", measure)], rounds=3)
    assert order == ["broken"]


def test_an_error_of_our_own_is_not_taken_for_a_contender_that_failed():
    with pytest.raises(ZeroDivisionError):
        interleaved([Contender("wrong", lambda: 1 / 0)], rounds=1)


def test_progress_names_the_round():
    said: list[str] = []
    interleaved([Contender("A", lambda: 1.0)], rounds=2, warm_up=1, say=said.append)
    assert said == ["warming up", "round 1 of 2", "round 2 of 2"]


def test_the_median_of_an_even_number_of_rounds_lies_between_the_middle_two():
    figures = Figures((4.0, 1.0, 2.0, 100.0))
    assert (figures.median, figures.least, figures.most) == (3.0, 1.0, 100.0)


def test_one_slow_round_does_not_move_the_median():
    assert Figures((1.0, 1.0, 1.0, 1.0, 60.0)).median == 1.0


def test_the_spread_is_half_the_distance_of_the_quartiles_as_a_part_of_the_median():
    assert Figures((8.0, 9.0, 10.0, 11.0, 12.0)).spread == pytest.approx(0.1)


@pytest.mark.parametrize("figures", [one(5.0), Figures((0.0, 0.0, 0.0))])
def test_there_is_no_spread_where_nothing_was_repeated_or_nothing_was_seen(figures):
    assert figures.spread == 0.0
