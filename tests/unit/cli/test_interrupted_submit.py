"""What Ctrl-C says about a submission: no more than is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.cli.main import main
from holdfast.cli.screen import Screen
from holdfast.errors import ExitCode
from holdfast.workbench.reach import events
from holdfast.workbench.submitting import submit


@pytest.fixture
def interrupt(tmp_path, monkeypatch, capsys) -> Callable[..., str]:
    """`interrupt(*events)`: the output of a submit that is interrupted after these events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")

    def call(*happened: events.Event) -> str:
        def interrupted(*_: Any, **__: Any) -> Iterator[events.Event]:
            yield from happened
            raise KeyboardInterrupt

        monkeypatch.setattr(submit, "submit", interrupted)
        assert main(["experiment", "submit", "train.py"]) == ExitCode.DETACHED
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        ([], "Interrupted before the run was created."),
        ([events.RunCreated("iris_1")], "Interrupted while the run was being started; it may have begun: iris_1"),
        ([events.RunCreated("iris_1"), events.RunStarted("iris_1")], "Detached. The run goes on: iris_1"),
    ],
    ids=["not created", "created", "started"],
)
def test_what_is_known_of_the_run_is_said_and_where_that_is_little_how_to_know_more(interrupt, happened, said):
    shown = interrupt(*happened)
    assert said in shown
    assert ("holdfast status -r iris_1" in shown) is (len(happened) == 1)


def test_an_id_that_was_shown_is_not_forgotten(interrupt, monkeypatch):
    show = Screen.show

    def interrupted(screen: Screen, event: events.Event) -> None:
        show(screen, event)
        raise KeyboardInterrupt

    monkeypatch.setattr(Screen, "show", interrupted)
    said = interrupt(events.RunCreated("iris_1"))
    assert "RunId: iris_1" in said and "holdfast status -r iris_1" in said
