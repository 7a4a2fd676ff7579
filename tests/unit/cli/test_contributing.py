"""The first example of CONTRIBUTING passes unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[3] / "CONTRIBUTING.md"


def test_the_first_example_passes_as_it_stands(command: Callable[..., Any]) -> None:
    example = re.search(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example[1], names)
    names["test_a_new_project_has_no_runs"](command)
