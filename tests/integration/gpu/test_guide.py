"""The guide about GPUs does what it shows, on a machine with a simulated GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.console_examples import collect, complaint, page_environment, run
from kit.gpu_cases import PRELUDE
from kit.nvml import GIB, Device, Simulated, occupying

pytestmark = pytest.mark.time_limit(300, "runs every command of the page")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "gpus.md"
SCRIPTS = {
    "train.py": f"{PRELUDE}{occupying(memory=8 * GIB, utilization=74)}\nlooks(4)\n",
    "on_cpu.py": f"{PRELUDE}\nlooks(4)\n",
    "forgotten.py": "import time\ntime.sleep(300)\n",
}


def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("gcc")
    gpus = Simulated(tmp_path / "gpus", [Device()])
    examples = collect(PAGE.read_text(encoding="utf-8"))
    folder = tmp_path / "reader"
    folder.mkdir()
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)

    answers = run(examples, folder, {**page_environment(Path(sys.executable)), **gpus.environment}, timeout=300)

    complaints = [complaint(example, answer) for example, answer in zip(examples, answers, strict=False)]
    assert [each for each in complaints if each] == []
    assert len(answers) == len(examples)
