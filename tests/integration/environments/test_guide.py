"""The guide for environments does what it shows."""

from __future__ import annotations

import sys
from pathlib import Path

from integration.console_examples import collect, complaint, page_environment, run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "environments.md"


def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path) -> None:
    examples = collect(PAGE.read_text(encoding="utf-8"))
    folder = tmp_path / "reader"
    folder.mkdir()

    answers = run(examples, folder, page_environment(Path(sys.executable)), timeout=300)

    complaints = [complaint(example, answer) for example, answer in zip(examples, answers, strict=False)]
    assert [each for each in complaints if each] == []
    assert len(answers) == len(examples)
