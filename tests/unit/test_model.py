"""What people read about how a run ended, and what they can do."""

import pytest

from holdfast.model import OUTCOMES, Ending, Reason, Status


@pytest.mark.parametrize("reason", Reason)
def test_every_remedy_is_ready_to_paste(reason):
    text = Ending(reason, code=1, signal=9, detail="it").remedy("iris_1", "gpu1")
    assert " NAME" not in text and "{" not in text
    if "{target}" in OUTCOMES[reason].remedy:
        assert "gpu1" in text


@pytest.mark.parametrize(("number", "is_native"), [(11, True), (6, True), (7, True), (15, False), (1, False)])
def test_only_a_signal_of_native_code_is_said_to_be_one(number, is_native):
    text = Ending(Reason.SIGNAL, signal=number).remedy("iris_1", "local")
    assert text.startswith("Native code failed") is is_native
    assert "If it is" not in text and "holdfast logs -r iris_1" in text


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (Ending(Reason.COMPLETED, code=0), 0),
        (Ending(Reason.EXIT_CODE, code=3), 3),
        (Ending(Reason.EXIT_CODE), 1),
        (Ending(Reason.SIGNAL, signal=15), 128 + 15),
        (Ending(Reason.KILLED), 128 + 9),
        (Ending(Reason.OUT_OF_MEMORY, signal=9), 128 + 9),
        (Ending(Reason.CANCELED, code=0), 247),
        (Ending(Reason.TIME_LIMIT, code=0), 248),
        (Ending(Reason.SUPERVISOR_DIED), 249),
        (Ending(Reason.NO_GPU), 252),
    ],
)
def test_the_exit_code_of_submit_is_the_scripts_own_or_says_what_happened(ending: Ending, code: int) -> None:
    assert ending.exit_code == code


@pytest.mark.parametrize("reason", Reason)
def test_only_a_run_that_completed_is_shown_as_completed_and_exits_with_0(reason: Reason) -> None:
    ending = Ending(reason)
    is_success = reason is Reason.COMPLETED
    assert (ending.status is Status.COMPLETED) == (ending.exit_code == 0) == is_success


def test_a_run_that_was_given_up_has_not_ended() -> None:
    assert [each for each in Status if each.is_final] == [Status.COMPLETED, Status.FAILED, Status.CANCELED]
