"""The guide for machines over SSH does what it shows, with a real server behind the name `gpu1`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.console_examples import collect, complaint, page_environment, run
from kit.boxes import Box

pytestmark = pytest.mark.time_limit(300, "runs every command of the page")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "remote-machines.md"


def test_the_commands_of_the_page_do_what_it_shows(box: Callable[..., Box], tmp_path: Path) -> None:
    gpu1 = box("gpu1")
    examples = collect(PAGE.read_text(encoding="utf-8"))
    folder = tmp_path / "reader"
    folder.mkdir()
    environment = {**page_environment(Path(sys.executable)), **gpu1.environment}

    answers = run(examples, folder, environment, timeout=300)

    complaints = [complaint(example, answer) for example, answer in zip(examples, answers, strict=False)]
    assert [each for each in complaints if each] == []
    assert len(answers) == len(examples)
