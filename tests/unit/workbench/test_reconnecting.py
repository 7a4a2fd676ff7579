"""How long Holdfast retries a run's link, and when it does not."""

from __future__ import annotations

import pytest

from holdfast.errors import ElsewhereError, FarSideError, HostError, HostKeyRefused, LoginNeeded, Unreachable
from holdfast.workbench.reach.link import TRIES, Patience

BROKEN = Unreachable("gpu1 cannot be reached: Connection refused")


def test_whatever_else_is_wrong_is_tried_a_few_times():
    patience = Patience(None, "The run goes on.")
    error = HostError("no Python", "Install Python.")
    assert [patience.pause(error) for _ in TRIES] == list(TRIES)
    with pytest.raises(HostError) as caught:
        patience.pause(error)
    assert caught.value.hint == "Install Python.\nThe run goes on."


@pytest.mark.parametrize(
    ("patience", "progress", "pauses"),
    [
        (Patience(None, ""), [0] * 8, [*TRIES, TRIES[-1], TRIES[-1], TRIES[-1]]),
        (Patience(None, "", progress=100), [100, 50, 100, 101, 101], [0.2, 1.0, 2.0, 0.2, 1.0]),
    ],
    ids=["for ever, with pauses that grow", "until more has come home than ever"],
)
def test_a_link_that_broke_is_tried_again(patience, progress, pauses):
    assert [patience.pause(BROKEN, each) for each in progress] == pauses


def test_a_host_that_sends_nonsense_after_each_piece_of_news_is_not_asked_for_ever():
    patience = Patience(None, "The run goes on.", progress=10)
    nonsense = HostError("nonsense")
    with pytest.raises(HostError, match="nonsense"):
        for _ in range(100):
            patience.pause(nonsense, progress=10)


def test_where_a_number_of_tries_is_given_no_more_are_made():
    patience = Patience(2, "The run goes on.")
    assert [patience.pause(BROKEN) for _ in range(2)] == [0.2, 1.0]
    with pytest.raises(HostError, match="Connection refused"):
        patience.pause(BROKEN)


@pytest.mark.parametrize(
    "error",
    [
        FarSideError("refused", "No."),
        ElsewhereError("Another machine answers.", "", "another machine answers at this address"),
        LoginNeeded("No password."),
        HostKeyRefused("Another key."),
    ],
)
def test_what_another_try_cannot_fix_is_raised_at_once(error):
    with pytest.raises(HostError) as caught:
        Patience(None, "The run goes on.").pause(error)
    assert caught.value is error


def test_where_few_tries_are_given_no_kind_of_failure_gets_more():
    patience = Patience(1, "Try again later.")
    nonsense = HostError("nonsense", "Hm.")
    assert patience.pause(nonsense) == TRIES[0]
    with pytest.raises(HostError) as caught:
        patience.pause(nonsense)
    assert caught.value.hint == "Hm.\nTry again later."
