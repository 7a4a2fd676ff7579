"""What Ctrl-C says of a submission: no more than is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import main
from holdfast.errors import ExitCode
from holdfast.workbench import events
from holdfast.workbench.submitting import submit

Interrupt = Callable[..., str]


@pytest.fixture
def interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Interrupt:
    """`interrupt(*events)`: what a submit says that is interrupted after them."""
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


def test_before_there_is_a_run_nothing_is_left(interrupt):
    assert "Interrupted before the run was created." in interrupt()


def test_while_it_is_being_started_nobody_knows_yet(interrupt):
    said = interrupt(events.RunCreated("iris_1"))
    assert "it may have begun: iris_1" in said
    assert "holdfast status -r iris_1" in said
    assert "goes on" not in said


def test_once_the_host_has_it_the_run_goes_on(interrupt):
    said = interrupt(events.RunCreated("iris_1"), events.RunStarted("iris_1"))
    assert "Detached. The run goes on: iris_1" in said


def test_an_id_that_was_shown_is_not_forgotten(interrupt, monkeypatch):
    from holdfast.cli.events import Screen

    show = Screen.show

    def interrupted(screen: Screen, event: events.Event) -> None:
        show(screen, event)
        raise KeyboardInterrupt

    monkeypatch.setattr(Screen, "show", interrupted)
    said = interrupt(events.RunCreated("iris_1"))
    assert "RunId: iris_1" in said
    assert "it may have begun: iris_1" in said
