"""What people are told about how a run ended, and what they can do."""

from __future__ import annotations

import pytest

from holdfast.model import OUTCOMES, Ending, Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_remedy_is_ready_to_paste(reason: Reason) -> None:
    text = Ending(reason, code=1, signal=9, detail="it").remedy("iris_1", "gpu1")
    assert " NAME" not in text and "{" not in text
    if "{target}" in OUTCOMES[reason].remedy:
        assert "gpu1" in text


@pytest.mark.parametrize(("number", "is_native"), [(11, True), (6, True), (7, True), (15, False), (1, False)])
def test_only_a_signal_of_native_code_is_said_to_be_one(number: int, is_native: bool) -> None:
    text = Ending(Reason.SIGNAL, signal=number).remedy("iris_1", "local")
    assert text.startswith("Native code failed") is is_native
    assert "If it is" not in text and "holdfast logs -r iris_1" in text
