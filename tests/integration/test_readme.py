"""What README.md and the guides show is what happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from integration.console_examples import collect, complaint, page_environment, run
from kit.homes import share_packages
from kit.notebooks import active_python

pytestmark = pytest.mark.time_limit(300, "installs packages as its reader would")

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "remote-machines.md": "tests/integration/remote/test_guide.py",
    "gpu-box.md": "tests/integration/docker/test_guide.py",
    "gpus.md": "tests/integration/gpu/test_guide.py",
    "other-systems.md": "nothing to run here",
}
GUIDES = [page for page in sorted((ROOT / "docs" / "guides").glob("*.md")) if page.name not in ELSEWHERE]
WITH_KERNEL = ("local-runs.md",)
"""Their readers have installed what runs notebooks."""
PAGES = [ROOT / "README.md", *GUIDES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_the_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    examples = collect(page.read_text(encoding="utf-8"))
    assert examples, "no block of the page is marked with <!-- run -->"
    folder = tmp_path / "reader"
    folder.mkdir()
    share_packages(Path(os.environ["HOLDFAST_HOME"]))

    variables = page_environment(Path(sys.executable))
    if page.name in WITH_KERNEL:
        variables |= active_python(variables["PATH"])

    answers = run(examples, folder, variables, timeout=300)

    complaints = [complaint(example, answer) for example, answer in zip(examples, answers, strict=False)]
    if any(complaints):
        pytest.fail("\n".join(filter(None, complaints)), pytrace=False)
    assert len(answers) == len(examples)
